#include "agent/core/worker_group_machine.h"

#include "tests/support/catch.h"

namespace ddprun {
namespace {

using namespace std::chrono_literals;
using namespace group_event;  // NOLINT(google-build-using-namespace)
namespace act = group_action;

constexpr ExitStatus kOk{ExitStatus::Kind::kExited, 0, false};
constexpr ExitStatus kCode7{ExitStatus::Kind::kExited, 7, false};
constexpr ExitStatus kTerminated{ExitStatus::Kind::kSignaled, 15, false};
constexpr ExitStatus kKilled{ExitStatus::Kind::kSignaled, 9, false};

// A machine with a clock of its own. Steps it and keeps the actions of the last step.
class Group {
 public:
  explicit Group(std::uint32_t workers, std::uint32_t max_restarts = 0, Duration grace = 30s)
      : machine_(WorkerGroupSettings{workers, max_restarts, grace, 5s}) {}

  const std::vector<GroupAction>& Step(const GroupEvent& event) {
    actions_ = machine_.Step(event, now_);
    return actions_;
  }
  void Start() {
    Step(Begin{});
    Step(RendezvousCompleted{});
    REQUIRE(Has(act::StartWorkers{machine_.restart_count()}));
  }
  void Pass(Duration time) { now_ += time; }
  TimePoint now() const { return now_; }
  WorkerGroupMachine& machine() { return machine_; }

  template <typename A>
  bool Has(const A& wanted) const {
    for (const GroupAction& action : actions_) {
      const A* found = std::get_if<A>(&action);
      if (found != nullptr && *found == wanted) {
        return true;
      }
    }
    return false;
  }
  const RunResult* finished() const {
    for (const GroupAction& action : actions_) {
      if (const auto* finish = std::get_if<act::Finish>(&action)) {
        return &finish->result;
      }
    }
    return nullptr;
  }
  const std::vector<GroupAction>& actions() const { return actions_; }

 private:
  WorkerGroupMachine machine_;
  TimePoint now_{1000s};
  std::vector<GroupAction> actions_;
};

TEST_CASE("the group starts when its round is complete") {
  Group group(2);
  group.Step(Begin{});
  CHECK(group.Has(act::JoinRendezvous{0}));
  CHECK(group.machine().state() == WorkerState::kInit);
  group.Step(RendezvousCompleted{});
  CHECK(group.Has(act::StartWorkers{0}));
  CHECK(group.machine().state() == WorkerState::kHealthy);
  CHECK_FALSE(group.machine().NextDeadline().has_value());
}

TEST_CASE("a worker that ends well is not restarted and the last one ends the job") {
  Group group(2, 3);
  group.Start();
  CHECK(group.Step(WorkerExited{0, kOk}).empty());
  group.Step(WorkerExited{1, kOk});
  CHECK(group.Has(act::SignalTree{15}));  // What the workers left behind.
  group.Step(TreeEmpty{});
  REQUIRE(group.finished() != nullptr);
  CHECK(group.finished()->state == WorkerState::kSucceeded);
  CHECK(group.finished()->attempts == 1);
}

TEST_CASE("the first failure stops the others at once and ends the job without restarts") {
  Group group(2);
  group.Start();
  group.Step(WorkerExited{1, kCode7});
  CHECK(group.Has(act::SignalTree{15}));
  CHECK(group.machine().NextDeadline() == group.now() + 30s);
  CHECK(group.Step(TreeEmpty{}).empty());  // Worker 0 has not been reaped yet.
  CHECK(group.Step(WorkerExited{0, kTerminated}).empty());
  group.Step(TreeEmpty{});
  const RunResult* result = group.finished();
  REQUIRE(result != nullptr);
  CHECK(result->state == WorkerState::kFailed);
  REQUIRE(result->outcomes.size() == 2);
  CHECK(result->outcomes[0].local_rank == 1);
  CHECK_FALSE(result->outcomes[0].stopped_by_agent);
  CHECK(result->outcomes[1].stopped_by_agent);
  CHECK_FALSE(result->outcomes[1].killed_by_agent);
}

TEST_CASE("restarts are counted and the attempt after the last one is final") {
  Group group(1, 2);
  group.Start();
  for (std::uint32_t restart = 1; restart <= 2; ++restart) {
    group.Step(WorkerExited{0, kCode7});
    group.Step(TreeEmpty{});
    CHECK(group.Has(act::JoinRendezvous{restart}));
    CHECK(std::holds_alternative<act::ReportFailedAttempt>(group.actions().front()));
    group.Step(RendezvousCompleted{});
    CHECK(group.Has(act::StartWorkers{restart}));
  }
  group.Step(WorkerExited{0, kCode7});
  group.Step(TreeEmpty{});
  REQUIRE(group.finished() != nullptr);
  CHECK(group.finished()->attempts == 3);
  CHECK(group.finished()->outcomes.size() == 1);  // Of the last attempt only.
}

TEST_CASE(
    "what ignores the stop signal is killed after the grace, and named when it survives that") {
  Group group(1, 1, 10s);
  group.Start();
  group.Step(SignalReceived{2});
  CHECK(group.Has(act::SignalTree{2}));
  group.Pass(10s - 1ns);
  CHECK(group.Step(Tick{}).empty());
  group.Pass(1ns);
  group.Step(Tick{});
  CHECK(group.Has(act::KillTree{}));
  CHECK(group.machine().NextDeadline() == group.now() + 5s);

  SECTION("it goes") {
    group.Step(WorkerExited{0, kKilled});
    group.Step(TreeEmpty{});
    REQUIRE(group.finished() != nullptr);
    CHECK(group.finished()->state == WorkerState::kStopped);
    CHECK(group.finished()->signal == 2);
    CHECK(group.finished()->outcomes[0].killed_by_agent);
    CHECK_FALSE(group.finished()->leftovers);
  }
  SECTION("it stays") {
    group.Pass(5s);
    group.Step(Tick{});
    REQUIRE(group.finished() != nullptr);
    CHECK(group.finished()->leftovers);
    CHECK(group.finished()->state == WorkerState::kStopped);
    CHECK_FALSE(group.machine().NextDeadline().has_value());
  }
}

TEST_CASE("what cannot be killed is never restarted beside") {
  Group group(1, 5, 0s);
  group.Start();
  group.Step(WorkerExited{0, kCode7});
  CHECK(group.Has(act::KillTree{}));  // A grace of zero kills at once.
  group.Pass(5s);
  group.Step(Tick{});
  REQUIRE(group.finished() != nullptr);
  CHECK(group.finished()->state == WorkerState::kFailed);
  CHECK(group.finished()->attempts == 1);
}

TEST_CASE("the second signal ends the grace, later ones too") {
  Group group(2);
  group.Start();
  group.Step(SignalReceived{15});
  group.Step(SignalReceived{2});
  CHECK(group.Has(act::KillTree{}));
  group.Step(SignalReceived{2});
  CHECK(group.Has(act::KillTree{}));
  group.Step(WorkerExited{0, kKilled});
  group.Step(WorkerExited{1, kKilled});
  group.Step(TreeEmpty{});
  REQUIRE(group.finished() != nullptr);
  CHECK(group.finished()->signal == 15);
}

TEST_CASE("a signal that is not to be handled stops the workers with another one") {
  Group group(1);
  group.Start();
  group.Step(SignalReceived{2, 15});
  CHECK(group.Has(act::SignalTree{15}));
  group.Step(WorkerExited{0, kTerminated});
  group.Step(TreeEmpty{});
  REQUIRE(group.finished() != nullptr);
  CHECK(group.finished()->signal == 2);
}

TEST_CASE("a signal while a failed group is stopping prevents its restart") {
  Group group(2, 3);
  group.Start();
  group.Step(WorkerExited{0, kCode7});
  const auto deadline = group.machine().NextDeadline();
  group.Pass(3s);
  group.Step(SignalReceived{2});
  CHECK(group.Has(act::SignalTree{2}));
  CHECK(group.machine().NextDeadline() == deadline);
  group.Step(WorkerExited{1, kTerminated});
  group.Step(TreeEmpty{});
  REQUIRE(group.finished() != nullptr);
  CHECK(group.finished()->state == WorkerState::kStopped);
}

TEST_CASE("a signal before the first start ends the job as unstarted") {
  Group group(2);
  group.Step(Begin{});
  group.Step(SignalReceived{15});
  REQUIRE(group.finished() != nullptr);
  CHECK(group.finished()->before_start);
  CHECK(group.Step(RendezvousCompleted{}).empty());  // Too late.
}

TEST_CASE("a signal between two attempts ends the job as started") {
  Group group(1, 1);
  group.Start();
  group.Step(WorkerExited{0, kCode7});
  group.Step(TreeEmpty{});
  group.Step(SignalReceived{15});
  REQUIRE(group.finished() != nullptr);
  CHECK_FALSE(group.finished()->before_start);
}

TEST_CASE(
    "after success a signal only hurries what the workers left, and does not undo the success") {
  Group group(1);
  group.Start();
  group.Step(WorkerExited{0, kOk});
  group.Step(SignalReceived{2});
  CHECK(group.Has(act::KillTree{}));
  group.Step(TreeEmpty{});
  REQUIRE(group.finished() != nullptr);
  CHECK(group.finished()->state == WorkerState::kSucceeded);
}

TEST_CASE("a worker that cannot be started ends the job without a restart") {
  Group group(2, 3);
  group.Start();
  group.Step(SpawnFailed{1, "worker 1: exec 'x': permission denied"});
  CHECK(group.Has(act::SignalTree{15}));
  group.Step(WorkerExited{0, kTerminated});
  group.Step(TreeEmpty{});
  REQUIRE(group.finished() != nullptr);
  CHECK(group.finished()->state == WorkerState::kFailed);
  CHECK(group.finished()->reason == "worker 1: exec 'x': permission denied");
}

TEST_CASE("all workers that cannot be started end the job") {
  Group group(2, 3);
  group.Start();
  group.Step(SpawnFailed{0, "no"});
  group.Step(SpawnFailed{1, "neither"});
  group.Step(TreeEmpty{});
  REQUIRE(group.finished() != nullptr);
  CHECK(group.finished()->reason == "no");
}

TEST_CASE("a failed rendezvous ends the job with its reason") {
  Group group(1, 3);
  group.Step(Begin{});
  group.Step(RendezvousFailed{"port 29500 is taken"});
  REQUIRE(group.finished() != nullptr);
  CHECK(group.finished()->reason == "port 29500 is taken");
  CHECK(group.finished()->attempts == 0);
}

TEST_CASE("an uninterruptible worker ends the job as failed whatever restarts are left") {
  Group group(2, 3);
  group.Start();
  group.Step(WorkerUninterruptible{0, "worker 0 in state D for 2 s"});
  CHECK(group.machine().state() == WorkerState::kUnhealthy);
  group.Step(WorkerExited{0, kTerminated});
  group.Step(WorkerExited{1, kTerminated});
  group.Step(TreeEmpty{});
  REQUIRE(group.finished() != nullptr);
  CHECK(group.finished()->state == WorkerState::kFailed);
}

TEST_CASE("time in which the launcher was stopped is not held against the workers") {
  Group group(1);
  group.Start();
  group.Step(SignalReceived{15});
  const auto deadline = group.machine().NextDeadline();
  group.Pass(100s);
  group.Step(HostPaused{100s});
  CHECK(group.machine().NextDeadline() == *deadline + 100s);
  CHECK(group.Step(Tick{}).empty());
}

TEST_CASE("an exit that was already counted, and events after the end, change nothing") {
  Group group(2);
  group.Start();
  group.Step(WorkerExited{0, kOk});
  CHECK(group.Step(WorkerExited{0, kCode7}).empty());
  group.Step(WorkerExited{1, kOk});
  group.Step(TreeEmpty{});
  REQUIRE(group.finished() != nullptr);
  CHECK(group.Step(SignalReceived{15}).empty());
  CHECK(group.Step(TreeEmpty{}).empty());
  CHECK(group.Step(Tick{}).empty());
}

TEST_CASE("the group can always say why it waits") {
  Group group(2, 1);
  CHECK(group.machine().Explain(group.now()) == "waiting for the rendezvous");
  group.Start();
  CHECK(group.machine().Explain(group.now()) == "2 of 2 workers running, 0 of 1 restarts used");
  group.Step(WorkerExited{0, kCode7});
  CHECK(group.machine().Explain(group.now()) == "waiting for 1 workers to stop, SIGKILL in 30.0 s");
  group.Pass(30s);
  group.Step(Tick{});
  CHECK(group.machine().Explain(group.now()) ==
        "waiting for 1 workers after SIGKILL, giving up in 5.0 s");
}

}  // namespace
}  // namespace ddprun
