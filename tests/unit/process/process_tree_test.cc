#include "agent/process/process_tree.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <list>

#include "rendezvous/base/random_id.h"
#include "tests/support/process.h"

namespace ddprun {
namespace {

using std::chrono::milliseconds;
using test::LinePipe;
using test::MakeWorker;
using test::MustSpawn;
using test::TempFolder;

constexpr std::chrono::seconds kLimit{10};

// A tree with its workers. Whatever a test does, nothing of it is left at its end.
class Job {
 public:
  explicit Job(bool use_cgroup = false, ProcessTree::Options options = {})
      : tree(ProcessTree::Create(RandomSuffix(), options)) {
    if (use_cgroup) {
      tree.MakeCgroup(nullptr);
    }
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() {
    tree.KillAll(kLimit);
    CHECK(test::AllChildrenEnd());
  }

  SpawnedProcess& Start(std::vector<std::string> steps, bool own_session = true) {
    SpawnRequest request = MakeWorker(std::move(steps), &pipe.write_end());
    request.environment.push_back(tree.marker().assignment());
    request.new_session = own_session;
    request.cgroup = tree.cgroup();
    workers.push_back(MustSpawn(request));
    tree.AddWorker(workers.back().pid, own_session);
    return workers.back();
  }

  // Takes the status, as its owner does.
  ExitStatus Reap(SpawnedProcess& worker) {
    const ExitStatus status = worker.pidfd.Wait().value();
    tree.WorkerReaped(worker.pid);
    return status;
  }

  ProcessTree tree;
  LinePipe pipe;
  std::list<SpawnedProcess> workers;  // Tests keep references.
};

std::vector<pid_t> PidsOf(const std::vector<ProcessInfo>& processes) {
  std::vector<pid_t> pids;
  std::ranges::transform(processes, std::back_inserter(pids), &ProcessInfo::pid);
  std::ranges::sort(pids);
  return pids;
}

std::vector<pid_t> Sorted(std::vector<pid_t> pids) {
  std::ranges::sort(pids);
  return pids;
}

TEST_CASE("members are workers and all that is below, by either way of looking") {
  for (const bool use_children_files : {true, false}) {
    Job job(false, {.use_children_files = use_children_files});
    CHECK(job.tree.Members().empty());
    job.Start(
        {"ready", "fork", "setsid", "ready", "fork-exit", "setsid", "clear-env", "ready", "pause"});
    const pid_t leader = job.pipe.ReadReadyPid();
    job.pipe.ReadReadyPid();  // Exits, and its parent leaves it as a zombie.
    const pid_t last = job.pipe.ReadReadyPid();
    REQUIRE(test::Eventually([&] { return PidsOf(job.tree.Members()) == Sorted({leader, last}); }));
  }
}

TEST_CASE("helpers and what is below them are no members") {
  Job job;
  const SpawnedProcess& helper = job.Start({"fork", "ready", "pause"});
  const pid_t below = job.pipe.ReadReadyPid();
  job.tree.ForgetWorker(helper.pid);
  job.tree.AddHelper(helper.pid);
  CHECK(job.tree.Members().empty());
  job.tree.HelperReaped(helper.pid);
  CHECK(PidsOf(job.tree.Members()) == Sorted({helper.pid, below}));
}

TEST_CASE("each worker's members are told apart, also after its leader's death") {
  Job job;
  const pid_t first = job.Start({"ready", "fork", "ready", "pause"}).pid;
  job.pipe.ReadReadyPid();
  const pid_t first_child = job.pipe.ReadReadyPid();
  SpawnedProcess& second = job.Start({"fork-exit", "ready", "pause"});
  const pid_t second_child = job.pipe.ReadReadyPid();
  CHECK(job.Reap(second).success());
  CHECK(PidsOf(job.tree.MembersOf(first)) == Sorted({first, first_child}));
  CHECK(PidsOf(job.tree.MembersOf(second.pid)) == std::vector<pid_t>{second_child});
}

TEST_CASE("a group is signalled while its leader is dead, and never after its end") {
  Job job;
  SpawnedProcess& worker = job.Start({"fork-exit", "ready", "pause"});
  const pid_t child = job.pipe.ReadReadyPid();
  CHECK(job.Reap(worker).success());
  CHECK(job.tree.SignalGroup(worker.pid, SIGTERM));
  siginfo_t info = {};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED) == 0);
  CHECK(info.si_status == SIGTERM);
  CHECK_FALSE(job.tree.SignalGroup(worker.pid, SIGTERM));
  job.tree.ForgetWorker(worker.pid);
  CHECK_FALSE(job.tree.SignalGroup(worker.pid, SIGTERM));
}

TEST_CASE("a group that another process has opened under a reaped leader's number is left alone") {
  Job job;
  SpawnedProcess& stranger = job.Start({"ready", "pause"});
  job.pipe.ReadReadyPid();
  job.tree.ForgetWorker(stranger.pid);
  job.tree.AddHelper(stranger.pid);     // Not a member, as an unrelated process is not.
  job.tree.AddWorker(stranger.pid);     // The worker that had the number before...
  job.tree.WorkerReaped(stranger.pid);  // ...and is gone.
  CHECK_FALSE(job.tree.SignalGroup(stranger.pid, SIGKILL));
  CHECK_FALSE(stranger.pidfd.ended());
  job.tree.HelperReaped(stranger.pid);
}

TEST_CASE("a worker in the launcher's own group is signalled without the launcher") {
  Job job;
  SpawnedProcess& worker = job.Start({"fork", "ready", "pause"}, false);
  job.pipe.ReadReadyPid();
  CHECK(job.tree.SignalGroup(worker.pid, SIGTERM));
  CHECK(job.Reap(worker).value == SIGTERM);
  CHECK(job.tree.KillAll(kLimit).empty());  // We are still here to see it.
}

TEST_CASE("a stopped process sees the signal that asks it to end") {
  Job job;
  SpawnedProcess& worker = job.Start({"ready", "stop"});
  job.pipe.ReadReadyPid();
  REQUIRE(test::Eventually([&] { return ReadProcess(worker.pid)->state == 'T'; }));
  SECTION("through the tree") {
    CHECK(job.tree.SignalTree(SIGTERM).empty());
  }
  SECTION("through its own tree") {
    CHECK(job.tree.SignalTree(worker.pid, SIGTERM).empty());
  }
  SECTION("through its group") {
    CHECK(job.tree.SignalGroup(worker.pid, SIGTERM));
  }
  CHECK(job.Reap(worker).value == SIGTERM);
}

TEST_CASE(
    "a grandchild in another session that ignores SIGTERM is killed when the leader is dead") {
  for (const bool use_cgroup : {false, true}) {
    Job job(use_cgroup);
    SpawnedProcess& worker =
        job.Start({"fork-exit", "setsid", "ignore", "ready", "fork", "setsid", "ready", "pause"});
    const pid_t grandchild = job.pipe.ReadReadyPid();
    const pid_t below = job.pipe.ReadReadyPid();
    CHECK(job.Reap(worker).success());
    job.tree.SignalTree(SIGTERM);
    CHECK(ReadProcess(grandchild)->alive());
    CHECK(job.tree.KillAll(kLimit).empty());
    CHECK_FALSE(ReadProcess(below).has_value());
    CHECK_FALSE(ReadProcess(grandchild).has_value());  // Dead and reaped.
  }
}

TEST_CASE("the cgroup is removed with the tree") {
  std::string path;
  {
    Job job(true);
    path = job.tree.cgroup_path();
    CHECK_FALSE(job.tree.containment().empty());
    if (path.empty()) {
      WARN("skipped: " << job.tree.containment());
      return;
    }
    job.Start({"ready", "fan", "3", "pause"});
    job.pipe.ReadReadyPid();
    CHECK(std::filesystem::exists(path));
    CHECK(job.tree.KillAll(kLimit).empty());
    CHECK(job.Reap(job.workers.front()).value == SIGKILL);
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a worker of the next attempt survives the cgroup's kill of the former one") {
  Job job(true);
  if (job.tree.cgroup() == nullptr) {
    WARN("skipped: no cgroup can be made here: " << job.tree.containment());
    return;
  }
  SpawnedProcess& first = job.Start({"ready", "pause"});
  job.pipe.ReadReadyPid();
  CHECK_FALSE(job.tree.KillOnce().empty());
  job.Reap(first);
  job.tree.ForgetWorker(first.pid);
  job.tree.RenewCgroup();
  SpawnedProcess& second = job.Start({"ready", "pause"});
  CHECK(job.pipe.ReadReadyPid() == second.pid);  // It has run, so it was not born to die.
  CHECK_FALSE(second.pidfd.ended());
}

TEST_CASE("processes that fork all the time are killed in bounded time") {
  for (const bool use_cgroup : {false, true}) {
    Job job(use_cgroup);
    job.Start({"ready", "fan", "8", "fan", "4", "pause"});
    job.Start({"ready", "comet"});  // No pid of it lives long enough to be signalled.
    job.pipe.ReadReadyPid();
    job.pipe.ReadReadyPid();
    CHECK(job.tree.KillAll(kLimit).empty());
  }
}

TEST_CASE("KillOnce says what was there, and nothing in the end") {
  Job job;
  SpawnedProcess& worker = job.Start({"ready", "pause"});
  job.pipe.ReadReadyPid();
  const std::vector<StubbornProcess> left = job.tree.KillOnce();
  REQUIRE(left.size() == 1);
  CHECK(left.front().process.pid == worker.pid);
  CHECK(left.front().errno_value == 0);
  CHECK(job.Reap(worker).value == SIGKILL);
  CHECK(job.tree.KillOnce().empty());
}

TEST_CASE("Ctrl-Z stops every member, fg wakes those that it stopped") {
  Job job;
  SpawnedProcess& worker = job.Start({"ready", "fork", "setsid", "ready", "pause"});
  job.pipe.ReadReadyPid();
  const pid_t grandchild = job.pipe.ReadReadyPid();
  SpawnedProcess& stopped = job.Start({"ready", "stop", "exit", "6"});
  job.pipe.ReadReadyPid();
  const auto state_is = [](pid_t pid, char state) {
    return test::Eventually([=] { return ReadProcess(pid)->state == state; });
  };
  REQUIRE(state_is(stopped.pid, 'T'));
  job.tree.Suspend();
  CHECK(state_is(worker.pid, 'T'));
  CHECK(state_is(grandchild, 'T'));
  job.tree.Resume();
  CHECK(state_is(worker.pid, 'S'));
  CHECK(state_is(grandchild, 'S'));
  CHECK(ReadProcess(stopped.pid)->state == 'T');  // It was stopped by somebody else.
  job.tree.Suspend();
  CHECK(job.tree.KillAll(kLimit).empty());  // Stopped ones die as well.
}

TEST_CASE("orphans are reaped, registered children are left to their owner") {
  for (const bool use_children_files : {true, false}) {
    Job job(false, {.use_children_files = use_children_files});
    SpawnedProcess& worker = job.Start({"exit", "7"});  // At the head of the queue, unreaped.
    REQUIRE(test::Eventually([&] { return worker.pidfd.ended(); }));
    SpawnedProcess& parent = job.Start({"fork-exit", "ready", "exit", "9"});
    const pid_t orphan = job.pipe.ReadReadyPid();
    REQUIRE(test::Eventually([&] { return parent.pidfd.ended(); }));
    std::vector<std::pair<pid_t, int>> reaped;
    REQUIRE(test::Eventually([&] {
      job.tree.ReapOrphans([&](pid_t pid, const ExitStatus& status) {
        reaped.emplace_back(pid, status.exit_code());
      });
      return !reaped.empty();
    }));
    job.tree.ReapOrphans([&](pid_t pid, const ExitStatus&) { reaped.emplace_back(pid, -1); });
    CHECK(reaped == std::vector<std::pair<pid_t, int>>{{orphan, 9}});
    CHECK(job.Reap(worker).value == 7);
    CHECK(job.Reap(parent).success());
  }
}

TEST_CASE("a helper is not reaped as an orphan") {
  Job job;
  SpawnedProcess& helper = job.Start({"exit", "5"});
  job.tree.ForgetWorker(helper.pid);
  job.tree.AddHelper(helper.pid);
  REQUIRE(test::Eventually([&] { return helper.pidfd.ended(); }));
  job.tree.ReapOrphans();
  CHECK(helper.pidfd.Wait().value().value == 5);
  job.tree.HelperReaped(helper.pid);
}

// Runs in a fork: as an ordinary user, with a set-uid worker that it may not signal.
int KillSetUidWorker(const std::string& program) {
  if (::setresuid(65534, 65534, 65534) != 0) {
    return 2;
  }
  ProcessTree tree = ProcessTree::Create(RandomSuffix());
  LinePipe pipe;
  SpawnRequest request =
      test::MakeRequest({program, "setuid", "ready", "pause"}, &pipe.write_end());
  const SpawnedProcess worker = MustSpawn(request);
  tree.AddWorker(worker.pid);
  pipe.ReadReadyPid();
  const std::vector<StubbornProcess> refused = tree.SignalTree(SIGTERM);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<StubbornProcess> left = tree.KillAll(milliseconds(200));
  const bool bounded = std::chrono::steady_clock::now() - begin < kLimit;
  const bool named = left.size() == 1 && left[0].process.pid == worker.pid &&
                     left[0].errno_value == EPERM && refused.size() == 1;
  const std::string text = named ? Describe(left[0]) : "";
  const std::string wanted = "pid " + std::to_string(worker.pid) + " (setuid-worker, state ";
  return bounded && text.starts_with(wanted) && text.ends_with(": operation not permitted") ? 0 : 1;
}

TEST_CASE("a member that may not be signalled is named, in bounded time") {
  if (::geteuid() != 0) {
    WARN("skipped: needs root to make a set-uid program");
    return;
  }
  const TempFolder folder;
  const std::string program = folder / "setuid-worker";
  std::filesystem::copy_file(test::kWorkerProgram, program);
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  REQUIRE(::chmod(program.c_str(), 04755) == 0);
  test::BecomeSubreaper();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(KillSetUidWorker(program));
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  for (const pid_t left : ReadChildren(::getpid()).pids) {  // The set-uid worker, now ours.
    ::kill(left, SIGKILL);
  }
  CHECK(test::AllChildrenEnd());
}

TEST_CASE("every state letter has words") {
  for (const char state : {'R', 'S', 'D', 'T', 't', 'Z', '?'}) {
    StubbornProcess stubborn;
    stubborn.process.pid = 42;
    stubborn.process.command = "python3";
    stubborn.process.state = state;
    const std::string text = Describe(stubborn);
    INFO(text);
    CHECK(text.starts_with(std::string("pid 42 (python3, state ") + state + ": "));
    CHECK(text.ends_with(")"));
  }
}

// Runs as PID 1 of a new pid namespace.
int LiveAsInit() {
  if (::getpid() != 1) {
    return 2;
  }
  Job job;
  // Its orphan carries no marker and is in no worker's session, as a process of `docker exec`.
  SpawnedProcess stranger =
      MustSpawn(MakeWorker({"fork-exit", "setsid", "ready", "pause"}, &job.pipe.write_end()));
  const pid_t strange = job.pipe.ReadReadyPid();
  static_cast<void>(stranger.pidfd.Wait());
  SpawnedProcess& worker = job.Start({"fork-exit", "setsid", "ready", "pause"});
  const pid_t ours = job.pipe.ReadReadyPid();
  static_cast<void>(job.Reap(worker));
  const bool seen = PidsOf(job.tree.Members()) == std::vector<pid_t>{ours};
  const bool killed = job.tree.KillAll(kLimit).empty();
  const bool spared = ReadProcess(strange)->alive() && !ReadProcess(ours).has_value();
  ::kill(strange, SIGKILL);
  bool reaped = false;
  test::Eventually([&] {
    job.tree.ReapOrphans([&](pid_t pid, const ExitStatus&) { reaped = reaped || pid == strange; });
    return reaped;
  });
  return (seen ? 0 : 1) + (killed ? 0 : 2) + (spared ? 0 : 4) + (reaped ? 0 : 8);
}

TEST_CASE("as PID 1 strangers are reaped but not killed") {
  const pid_t outer = ::fork();
  if (outer == 0) {
    if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) {
      ::_exit(77);
    }
    const pid_t init = ::fork();
    if (init == 0) {
      // The namespace needs its own view of /proc.
      if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          ::mount("proc", "/proc", "proc", 0, nullptr) != 0) {
        ::_exit(77);
      }
      ::_exit(LiveAsInit());
    }
    int status = 0;
    ::waitpid(init, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
  }
  int status = 0;
  REQUIRE(::waitpid(outer, &status, 0) == outer);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) {
    WARN("skipped: no right to make a pid namespace");
    return;
  }
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace ddprun
