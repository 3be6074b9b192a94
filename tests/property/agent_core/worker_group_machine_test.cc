#include "agent/core/worker_group_machine.h"

#include <rapidcheck.h>

#include "tests/support/catch.h"

namespace ddprun {
namespace {

using namespace std::chrono_literals;

// Plays the world for a machine: workers that exit by themselves or when told, some only by
// SIGKILL, some never, with signals at any moment. The world answers every action, so the machine
// must reach its end.
class World {
 public:
  World(std::uint32_t workers, std::uint32_t restarts)
      : settings_{workers, restarts, 30s, 5s}, machine_(settings_) {}

  void Run() {
    Feed(group_event::Begin{});
    for (int step = 0; step < 400 && !finished_; ++step) {
      Move(*rc::gen::inRange(0, 10));
    }
    Calm();
  }

 private:
  void Move(int choice) {
    if (choice < 5 && !alive_.empty()) {
      const auto exits =
          *rc::gen::elementOf(std::vector<std::uint32_t>(alive_.begin(), alive_.end()));
      Exit(exits, *rc::gen::element(0, 0, 1, 7));
    } else if (choice == 5) {
      Feed(group_event::SignalReceived{*rc::gen::element(1, 2, 15)});
    } else if (choice == 6) {
      now_ += std::chrono::seconds(*rc::gen::inRange(0, 40));
      Feed(group_event::Tick{});
    } else if (choice == 7) {
      Feed(group_event::HostPaused{3s});
    } else if (alive_.empty()) {
      Feed(group_event::TreeEmpty{});
    }
  }

  // Everything dies when it is killed, nothing else happens: the job must end.
  void Calm() {
    for (int step = 0; step < 100 && !finished_; ++step) {
      if (alive_.empty()) {
        Feed(group_event::TreeEmpty{});
      } else if (!machine_.NextDeadline()) {
        Exit(*alive_.begin(), 0);
      } else {
        now_ = *machine_.NextDeadline();
        Feed(group_event::Tick{});
      }
    }
    RC_ASSERT(finished_);
  }

  void Exit(std::uint32_t local_rank, int code) {
    alive_.erase(local_rank);
    Feed(group_event::WorkerExited{local_rank, {ExitStatus::Kind::kExited, code, false}});
  }

  void Feed(const GroupEvent& event) {
    RC_ASSERT(!machine_.Explain(now_).empty());
    for (const GroupAction& action : machine_.Step(event, now_)) {
      RC_ASSERT(!finished_);
      Obey(action);
    }
  }

  void Obey(const GroupAction& action) {
    if (std::holds_alternative<group_action::JoinRendezvous>(action)) {
      RC_ASSERT(alive_.empty());
      joining_ = true;
    } else if (const auto* start = std::get_if<group_action::StartWorkers>(&action)) {
      RC_ASSERT(start->restart_count == started_);
      RC_ASSERT(started_ <= settings_.max_restarts);
      ++started_;
      for (std::uint32_t i = 0; i < settings_.local_world_size; ++i) {
        alive_.insert(i);
      }
    } else if (std::holds_alternative<group_action::KillTree>(action)) {
      killed_ = true;
    } else if (std::holds_alternative<group_action::Finish>(action)) {
      finished_ = true;
    }
    if (std::exchange(joining_, false)) {
      Feed(group_event::RendezvousCompleted{});
    }
  }

  WorkerGroupSettings settings_;
  WorkerGroupMachine machine_;
  TimePoint now_{100s};
  std::set<std::uint32_t> alive_;
  std::uint32_t started_ = 0;
  bool joining_ = false;
  bool killed_ = false;
  bool finished_ = false;
};

TEST_CASE(
    "whatever happens, the group ends, within its budget, and never starts beside a living "
    "worker") {
  CHECK(rc::check([] {
    World world(*rc::gen::inRange(1U, 5U), *rc::gen::inRange(0U, 4U));
    world.Run();
  }));
}

}  // namespace
}  // namespace ddprun
