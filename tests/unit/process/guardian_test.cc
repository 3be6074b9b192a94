#include "agent/process/guardian.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <list>
#include <optional>

#include "agent/process/job_cgroup.h"
#include "agent/process/process_table.h"
#include "tests/support/process.h"

namespace ddprun {
namespace {

namespace fs = std::filesystem;
using test::LinePipe;
using test::MustSpawn;
using test::TempFolder;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// A launcher brought to a phase, with its worker's steps.
class Launcher {
 public:
  Launcher(const std::string& phase, bool use_cgroup, const std::string& folder,
           std::vector<std::string> steps) {
    test::BecomeSubreaper();
    std::vector<std::string> argv = {test::kLauncherProgram, phase, use_cgroup ? "cgroup" : "plain",
                                     folder, test::kWorkerProgram};
    argv.insert(argv.end(), steps.begin(), steps.end());
    SpawnRequest request = test::MakeRequest(argv, &pipe_.write_end());
    request.parent_death_signal = 0;
    process_ = MustSpawn(request);
  }

  // Reads until `ready` workers' lines have come.
  void AwaitReady(int ready) {
    while (ready > 0) {
      ready -= ReadLine().starts_with("ready ") ? 1 : 0;
    }
  }

  void AwaitPhase() {
    while (!arrived_) {
      ReadLine();
    }
  }

  // Lets a launcher in the phase "stopping" go on; once a worker is ready, so that it blocks the
  // signal.
  void LetStop() { REQUIRE(process_.pidfd.Signal(SIGUSR1).has_value()); }

  void Kill() { REQUIRE(process_.pidfd.Signal(SIGKILL).has_value()); }
  Pidfd& pidfd() { return process_.pidfd; }
  pid_t pid() const { return process_.pid; }
  LinePipe& pipe() { return pipe_; }

  std::vector<pid_t> pids;
  std::string cgroup;

 private:
  std::string ReadLine() {
    std::string line = pipe_.ReadLine();
    INFO("line: " << line);
    REQUIRE_FALSE(line.starts_with("<"));
    arrived_ = arrived_ || line == "phase";
    if (line.starts_with("ready ")) {
      pids.push_back(static_cast<pid_t>(std::atoi(line.c_str() + 6)));
    } else if (line.starts_with("cgroup ")) {
      cgroup = line.substr(7);
    }
    return line;
  }

  LinePipe pipe_;
  SpawnedProcess process_;
  bool arrived_ = false;
};

void CheckNothingLeft(const Launcher& launcher, const TempFolder& folder) {
  CHECK(test::AllChildrenEnd());
  CHECK(fs::is_empty(folder.path()));
  CHECK((launcher.cgroup.empty() || !fs::exists(launcher.cgroup)));
}

TEST_CASE("nothing outlives a launcher that is killed, in any phase, with and without a cgroup") {
  for (const bool use_cgroup : {false, true}) {
    for (const std::string phase : {"idle", "paths", "spawned", "watched", "stopping"}) {
      INFO("phase " << phase << (use_cgroup ? ", cgroup" : ", plain"));
      const TempFolder folder;
      // Ignores SIGTERM, makes its own session, and leaves a child there that lost its parent.
      Launcher launcher(
          phase, use_cgroup, folder.path(),
          {"ignore", "fork", "setsid", "ready", "fork-exit", "setsid", "ready", "pause"});
      const bool has_workers = phase != "idle" && phase != "paths";
      launcher.AwaitReady(has_workers ? 4 : 0);
      if (phase == "stopping") {
        launcher.LetStop();
      }
      launcher.AwaitPhase();
      launcher.Kill();
      CheckNothingLeft(launcher, folder);
    }
  }
}

TEST_CASE("a launcher that crashes or just exits leaves nothing") {
  for (const std::string phase : {"abort", "exit"}) {
    const TempFolder folder;
    Launcher launcher(phase, false, folder.path(), {"ignore", "pause"});
    CheckNothingLeft(launcher, folder);
  }
}

TEST_CASE("an orderly goodbye leaves no guardian and touches nothing") {
  const TempFolder folder;
  Launcher launcher("orderly", true, folder.path(), {"ignore", "fork", "setsid", "pause"});
  CHECK(launcher.pidfd().Wait().value().success());
  CHECK(::waitpid(-1, nullptr, WNOHANG) < 0);  // Nothing was left to us, not even for a moment.
  CHECK(fs::exists(folder / "fifo"));
  CHECK(fs::exists(folder / "tree/inner/file"));
}

TEST_CASE("a process without environment, session and parent is found only with a cgroup") {
  const std::vector<std::string> steps = {"fork-exit", "setsid", "clear-env", "ready", "pause"};
  const TempFolder folder;
  {
    Launcher launcher("watched", true, folder.path(), steps);
    launcher.AwaitReady(2);
    launcher.AwaitPhase();
    if (launcher.cgroup.empty()) {
      WARN("skipped: no cgroup here");
      for (const pid_t pid : launcher.pids) {
        ::kill(pid, SIGKILL);
      }
      launcher.Kill();
      CHECK(test::AllChildrenEnd());
    } else {
      launcher.Kill();
      CheckNothingLeft(launcher, folder);
    }
  }
  {
    Launcher launcher("watched", false, folder.path(), steps);
    launcher.AwaitReady(2);
    launcher.AwaitPhase();
    launcher.Kill();
    // The guardian and the launcher end; these two are the known limit (guardian.h).
    REQUIRE(test::Eventually([&] {
      while (::waitpid(launcher.pid(), nullptr, WNOHANG) > 0) {
      }
      std::vector<pid_t> left;
      for (const pid_t pid : ReadChildren(::getpid()).pids) {
        if (ReadProcess(pid)->alive()) {
          left.push_back(pid);
        }
      }
      std::ranges::sort(left);
      std::ranges::sort(launcher.pids);
      return left == launcher.pids;
    }));
    for (const pid_t pid : launcher.pids) {
      CHECK(::kill(pid, SIGKILL) == 0);
    }
    CHECK(test::AllChildrenEnd());
  }
}

TEST_CASE("a process that cleared its environment but kept its session is found") {
  const TempFolder folder;
  Launcher launcher("watched", false, folder.path(), {"fork-exit", "clear-env", "ready", "pause"});
  launcher.AwaitReady(2);
  launcher.AwaitPhase();
  launcher.Kill();
  CheckNothingLeft(launcher, folder);
}

// The guardian in this test's own process, for a look from outside.
std::optional<pid_t> FindGuardian(pid_t launcher) {
  for (const pid_t pid : ReadChildren(launcher).pids) {
    if (ReadProcess(pid)->command == Guardian::kProcessName) {
      return pid;
    }
  }
  return std::nullopt;
}

TEST_CASE("the guardian is hard to hit and holds nothing of the launcher") {
  const TempFolder folder;
  Launcher launcher("idle", false, folder.path(), {"pause"});
  launcher.AwaitPhase();
  std::optional<pid_t> pid;
  REQUIRE(test::Eventually([&] { return (pid = FindGuardian(launcher.pid())).has_value(); }));
  const std::string proc = "/proc/" + std::to_string(*pid);
  // Its name in full, as pkill -f sees it, names neither launcher nor script. The call to prctl
  // comes first.
  REQUIRE(test::Eventually([&] { return ReadText(proc + "/cmdline").starts_with("ddp-guard\0"); }));
  CHECK(ReadText(proc + "/cmdline").find("launcher") == std::string::npos);
  REQUIRE(test::Eventually([&] { return fs::read_symlink(proc + "/cwd") == "/"; }));
  const ProcessInfo info = *ReadProcess(*pid);
  CHECK(info.session == *pid);
  std::vector<std::string> targets;
  REQUIRE(test::Eventually([&] {
    targets.clear();
    for (const auto& entry : fs::directory_iterator(proc + "/fd")) {
      targets.push_back(fs::read_symlink(entry.path()).string());
    }
    return targets.size() == 5;  // 0-2, the socket, and the launcher's pidfd.
  }));
  CHECK(std::ranges::count(targets, "/dev/null") == 3);
  CHECK(std::ranges::count_if(
            targets, [](const std::string& target) { return target.starts_with("socket:"); }) == 1);
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP && signal != SIGSEGV && signal != SIGBUS &&
        signal != SIGABRT && signal != SIGILL && signal != SIGFPE) {
      ::kill(*pid, signal);
    }
  }
  CHECK(ReadProcess(*pid)->alive());
  launcher.Kill();
  CheckNothingLeft(launcher, folder);
}

TEST_CASE("a reader of the launcher's output sees its end when the launcher is killed") {
  const TempFolder folder;
  Launcher launcher("idle", false, folder.path(), {"pause"});
  launcher.AwaitPhase();
  launcher.pipe().CloseWriteEnd();
  launcher.Kill();
  CHECK(launcher.pipe().ReadLine() == "<end>");
  CheckNothingLeft(launcher, folder);
}

TEST_CASE("a guardian that somebody killed is an error, not a signal") {
  Guardian guardian = Guardian::Start(JobMarker("x1", "")).value();
  REQUIRE(guardian.pidfd().Signal(SIGKILL).has_value());
  REQUIRE(test::Eventually([&] { return guardian.pidfd().ended(); }));
  CHECK(guardian.WatchWorker(::getpid()).error().code == ErrorCode::kUnavailable);
  guardian.Goodbye();
  CHECK(::waitpid(-1, nullptr, WNOHANG) < 0);
}

TEST_CASE("a guardian that is stopped does not block, and goodbye ends it") {
  Guardian guardian = Guardian::Start(JobMarker("x2", "")).value();
  REQUIRE(guardian.pidfd().Signal(SIGSTOP).has_value());
  Expected<void> sent;
  for (int i = 0; i < 100'000 && sent; ++i) {
    sent = guardian.ForgetWorker(2);
  }
  REQUIRE_FALSE(sent.has_value());
  CHECK(sent.error().code == ErrorCode::kResourceExhausted);
  guardian.Goodbye();
  guardian.Goodbye();  // A second one does nothing.
  CHECK(::waitpid(-1, nullptr, WNOHANG) < 0);
}

TEST_CASE("paths that must not be owned are refused at once") {
  Guardian guardian = Guardian::Start(JobMarker("x3", "")).value();
  CHECK(guardian.OwnPath("/", true).error().code == ErrorCode::kInvalidArgument);
  CHECK(guardian.OwnPath("/tmp", true).error().code == ErrorCode::kInvalidArgument);
  CHECK(guardian.OwnPath("x/y", true).error().code == ErrorCode::kInvalidArgument);
  guardian.Goodbye();
}

TEST_CASE("a disowned path stays, and a worker's session that is forgotten is spared") {
  const TempFolder folder;
  LinePipe pipe;
  SpawnedProcess process = MustSpawn(test::MakeWorker({"ready", "pause"}, &pipe.write_end()));
  pipe.ReadReadyPid();
  pid_t guardian_pid = -1;
  {
    Guardian guardian = Guardian::Start(JobMarker("x4", "")).value();
    guardian_pid = guardian.pid();
    std::ofstream(folder / "mine") << "x";
    std::ofstream(folder / "kept") << "x";
    REQUIRE(guardian.OwnPath(folder / "mine", false).has_value());
    REQUIRE(guardian.OwnPath(folder / "kept", false).has_value());
    REQUIRE(guardian.DisownPath(folder / "kept").has_value());
    REQUIRE(guardian.WatchWorker(process.pid).has_value());
    REQUIRE(guardian.ForgetWorker(process.pid).has_value());
  }  // As if the launcher had died: it cleans up.
  REQUIRE(::waitpid(guardian_pid, nullptr, 0) == guardian_pid);
  CHECK_FALSE(fs::exists(folder / "mine"));
  CHECK(fs::exists(folder / "kept"));
  CHECK_FALSE(process.pidfd.ended());
  REQUIRE(process.pidfd.Signal(SIGKILL).has_value());
  CHECK(process.pidfd.Wait().has_value());
}

// The kill comes at any moment: sometimes before main, sometimes during a spawn. Four launchers at
// a time, as on a busy machine; the first ones are the longest on their way when they are killed.
TEST_CASE("two hundred launchers killed at any moment leave nothing", "[.rounds]") {
  const std::vector<std::string> phases = {"paths", "spawned", "watched", "stopping"};
  for (int round = 0; round < 50; ++round) {
    const TempFolder folder;
    std::list<Launcher> launchers;
    for (const std::string& phase : phases) {
      const std::string own = folder / phase;
      REQUIRE(::mkdir(own.c_str(), 0700) == 0);
      launchers.emplace_back(
          phase, round % 2 == 0, own,
          std::vector<std::string>{"ignore", "fork", "setsid", "ready", "pause"});
    }
    if (round % 4 == 3) {
      launchers.back().AwaitReady(1);
      launchers.back().LetStop();
      launchers.back().AwaitPhase();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(round * 200));
    }
    std::ranges::for_each(launchers, &Launcher::Kill);
    INFO("round " << round);
    REQUIRE(test::AllChildrenEnd());
    for (const std::string& phase : phases) {
      REQUIRE(fs::is_empty(folder / phase));
    }
  }
}

}  // namespace
}  // namespace ddprun
