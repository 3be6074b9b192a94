#include "agent/process/spawner.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <fstream>

#include "agent/process/job_cgroup.h"
#include "agent/process/process_table.h"
#include "agent/process/spawn_clone.h"
#include "rendezvous/base/random_id.h"
#include "rendezvous/base/text.h"
#include "tests/support/process.h"

namespace ddprun {
namespace {

using test::LinePipe;
using test::MakeRequest;
using test::MakeWorker;
using test::MustSpawn;
using test::TempFolder;

std::string SpawnError(const SpawnRequest& request) {
  Expected<SpawnedProcess> process = Spawn(request);
  REQUIRE_FALSE(process.has_value());
  REQUIRE(::waitpid(-1, nullptr, WNOHANG) < 0);  // No process is left.
  return process.error().message;
}

std::string WriteFile(const std::string& path, const std::string& text, mode_t mode) {
  std::ofstream(path) << text;
  REQUIRE(::chmod(path.c_str(), mode) == 0);
  return path;
}

// What a command writes to its standard output, after it has exited 0.
std::string OutputOf(SpawnRequest request, LinePipe& pipe) {
  request.out = StandardStream::To(pipe.write_end());
  SpawnedProcess process = MustSpawn(request);
  std::string text = pipe.ReadAll();
  REQUIRE(process.pidfd.Wait().value() == ExitStatus{});
  return text;
}

std::string StatusField(const std::string& text, const std::string& name) {
  for (const std::string& line : Split(text, '\n')) {
    if (line.starts_with(name + ":")) {
      return std::string(Trim(std::string_view(line).substr(name.size() + 1)));
    }
  }
  return "<none>";
}

// Runs `body` in a forked copy of the test, whose exit code tells.
int InFork(int (*body)()) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(body());
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_CASE("a missing program is an error with the worker, the stage and the reason") {
  Expected<SpawnedProcess> process = Spawn(MakeRequest({"/nowhere/train.py"}));
  REQUIRE_FALSE(process.has_value());
  CHECK(process.error().message == "worker 3: exec '/nowhere/train.py': no such file or directory");
  CHECK(process.error().cause.value() == ENOENT);
  CHECK(process.error().code == ErrorCode::kNotFound);
}

TEST_CASE("a name that is in no folder of PATH says so") {
  CHECK(SpawnError(MakeRequest({"no-such-program"})) ==
        "worker 3: exec 'no-such-program': no such file or directory (it is in no folder of the "
        "worker's PATH)");
}

TEST_CASE("a script without the executable bit gets the way out") {
  const TempFolder folder;
  const std::string path = WriteFile(folder / "train.py", "#!/bin/sh\n", 0644);
  CHECK(
      SpawnError(MakeRequest({path})) ==
      "worker 3: exec '" + path +
          "': permission denied (the file is not executable: use chmod +x, or name its interpreter "
          "first)");
}

TEST_CASE("a directory as program says that it is one") {
  CHECK_THAT(SpawnError(MakeRequest({"/tmp"})), Catch::Matchers::Contains("it is a directory"));
}

TEST_CASE("a script without a first line names what is missing") {
  const TempFolder folder;
  const std::string path = WriteFile(folder / "bind.sh", "exec python3 \"$@\"\n", 0755);
  CHECK(SpawnError(MakeRequest({path})) ==
        "worker 3: exec '" + path +
            "': exec format error (it has no '#!' line: write one, or name its interpreter first)");
}

TEST_CASE("a script with a missing interpreter names the interpreter") {
  const TempFolder folder;
  const std::string path = WriteFile(folder / "x", "#!/nowhere/python -u\n", 0755);
  CHECK_THAT(SpawnError(MakeRequest({path})),
             Catch::Matchers::Contains("'/nowhere/python' of its first line does not)"));
}

TEST_CASE("a script with carriage returns says so") {
  const TempFolder folder;
  const std::string path = WriteFile(folder / "x", "#!/bin/sh\r\necho\r\n", 0755);
  CHECK_THAT(SpawnError(MakeRequest({path})), Catch::Matchers::Contains("carriage return"));
}

TEST_CASE("a program for another machine and an empty file are told apart") {
  const TempFolder folder;
  std::string elf(
      "\x7f"
      "ELF\x02\x01\x01",
      7);
  elf.resize(64, '\0');
  CHECK_THAT(SpawnError(MakeRequest({WriteFile(folder / "elf", elf, 0755)})),
             Catch::Matchers::Contains("another kind of machine"));
  CHECK_THAT(SpawnError(MakeRequest({WriteFile(folder / "empty", "", 0755)})),
             Catch::Matchers::Contains("the file is empty"));
}

TEST_CASE("an argument that the kernel will not take is explained") {
  const std::string huge(200 * 1024, 'x');
  CHECK_THAT(SpawnError(MakeRequest({"/bin/true", huge})),
             Catch::Matchers::Contains("argument list too long (the arguments"));
}

TEST_CASE("no program at all is an error") {
  CHECK_THAT(SpawnError(MakeRequest({})), Catch::Matchers::Contains("no program to start"));
  CHECK_THAT(SpawnError(MakeRequest({""})), Catch::Matchers::Contains("exec ''"));
}

TEST_CASE("a stream that is not open fails at its stage") {
  SpawnRequest request = MakeRequest({"/bin/true"});
  const UniqueFd closed(1'000'000);  // No such descriptor; closing it again is harmless.
  request.err = StandardStream::To(closed);
  CHECK_THAT(SpawnError(request),
             Catch::Matchers::Contains("connect the standard streams: bad file descriptor"));
}

TEST_CASE("a descriptor to keep that is not open fails at its stage") {
  SpawnRequest request = MakeRequest({"/bin/true"});
  const UniqueFd closed(1'000'000);
  request.keep_open = {&closed};
  CHECK_THAT(SpawnError(request), Catch::Matchers::Contains("close inherited descriptors"));
}

TEST_CASE("a process limit fails before there is a child", "[rlimit]") {
  if (::geteuid() != 0) {
    WARN("skipped: needs root to become a user with a process limit");
    return;
  }
  CHECK(InFork([] {
          const rlim_t one = 1;
          const rlimit limit = {one, one};
          if (::setrlimit(RLIMIT_NPROC, &limit) != 0 || ::setresuid(64321, 64321, 64321) != 0) {
            return 2;
          }
          SpawnRequest request = MakeRequest({"/bin/true"});
          static_cast<void>(
              Spawn(request));  // The first may fit into the limit, a second does not.
          SpawnRequest sleeper = MakeRequest({"/bin/sleep", "10"});
          Expected<SpawnedProcess> first = Spawn(sleeper);
          Expected<SpawnedProcess> second = Spawn(sleeper);
          const Error error = first ? second.error() : first.error();
          return error.message.starts_with("worker 3: make a process: ") &&
                         error.cause.value() == EAGAIN
                     ? 0
                     : 1;
        }) == 0);
}

TEST_CASE("PATH is the worker's, in its order, and the first file that may run wins") {
  const TempFolder folder;
  for (const std::string name : {"a", "b", "c"}) {
    REQUIRE(::mkdir((folder / name).c_str(), 0755) == 0);
  }
  WriteFile(folder / "a/tool", "#!/bin/sh\necho a\n", 0644);  // In the way, but not executable.
  WriteFile(folder / "b/tool", "#!/bin/sh\necho b\n", 0755);
  WriteFile(folder / "c/tool", "#!/bin/sh\necho c\n", 0755);
  SpawnRequest request = MakeRequest({"tool"});
  request.environment = {"PATH=/nowhere:" + folder / "a" + ":" + folder / "b/" + ":" +
                         folder / "c"};
  LinePipe pipe;
  CHECK(OutputOf(request, pipe) == "b\n");
}

TEST_CASE("a file in PATH that may not run is remembered, and named in full") {
  const TempFolder folder;
  WriteFile(folder / "tool", "#!/bin/sh\n", 0644);
  SpawnRequest request = MakeRequest({"tool"});
  request.environment = {"PATH=" + folder.path() + ":/nowhere"};
  CHECK_THAT(SpawnError(request),
             Catch::Matchers::Contains("exec '" + folder / "tool" + "': permission denied"));
}

TEST_CASE("without PATH the system's folders are searched") {
  SpawnRequest request = MakeRequest({"true"});
  request.environment = {};
  CHECK(MustSpawn(request).pidfd.Wait().value().success());
}

TEST_CASE("arguments and environment arrive as they are") {
  LinePipe pipe;
  SpawnRequest request =
      MakeRequest({"/bin/sh", "-c", "printf '%s|' \"$@\" \"$X\"", "_", "a b", "", "*"});
  request.environment = {"X=1 = \n2"};
  CHECK(OutputOf(request, pipe) == "a b||*|1 = \n2|");
}

// Says which descriptors below 800 it has, without opening any.
constexpr const char* kListDescriptors =
    "i=0; while [ $i -lt 800 ]; do [ -e /proc/$$/fd/$i ] && printf '%s ' $i; i=$((i + 1)); done; "
    "echo";

TEST_CASE("only the standard streams and the named descriptors are open in the worker") {
  LinePipe pipe;
  const UniqueFd leak(
      ::open("/dev/null", O_RDONLY));  // Without close-on-exec: a careless library's.
  const UniqueFd kept(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  SpawnRequest request = MakeRequest({"/bin/sh", "-c", kListDescriptors});
  request.keep_open = {&kept};
  CHECK(OutputOf(request, pipe) == "0 1 2 " + std::to_string(kept.get()) + " \n");
}

// A filter under which one system call does not exist, as on an older kernel or in a sandbox.
void ForbidSystemCall(std::uint32_t number) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {std::size(code), code};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    ::_exit(3);
  }
}

TEST_CASE("descriptors are closed on kernels without close_range too") {
  CHECK(InFork([] {
          ForbidSystemCall(SYS_close_range);
          std::vector<UniqueFd> many;
          for (int i = 0; i < 700; ++i) {  // More than one read of /proc/self/fd holds.
            many.emplace_back(::dup(0));
          }
          LinePipe pipe;
          SpawnRequest request = MakeRequest({"/bin/sh", "-c", kListDescriptors});
          request.keep_open = {&many[650]};
          const std::string kept = std::to_string(many[650].get());
          return OutputOf(request, pipe) == "0 1 2 " + kept + " \n" ? 0 : 1;
        }) == 0);
}

TEST_CASE("streams may be given in any order of the numbers 0 to 2") {
  CHECK(InFork([] {
          LinePipe pipe;
          ::dup2(pipe.write_end().get(), 0);  // The worker's error stream is our 0, and so on.
          const UniqueFd zero(0);
          SpawnRequest request = MakeRequest({"/bin/sh", "-c", "echo out; echo err >&2"});
          request.in = StandardStream::Null();
          request.out = StandardStream::To(zero);
          request.err = StandardStream::To(zero);
          SpawnedProcess process = MustSpawn(request);
          return pipe.ReadLine() == "out" && pipe.ReadLine() == "err" ? 0 : 1;
        }) == 0);
}

TEST_CASE("a launcher with closed standard streams gets them on the null device") {
  CHECK(InFork([] {
          ::close(0);
          ::close(1);
          ::close(2);
          StartSignals::Capture();
          for (int fd = 0; fd <= 2; ++fd) {
            struct stat status = {};
            if (::fstat(fd, &status) != 0 || !S_ISCHR(status.st_mode)) {
              return 1;
            }
          }
          return 0;
        }) == 0);
}

TEST_CASE("a worker leads its own session unless it must not") {
  LinePipe pipe;
  SpawnRequest request = MakeWorker({"ready", "pause"}, &pipe.write_end());
  for (const bool new_session : {true, false}) {
    request.new_session = new_session;
    SpawnedProcess process = MustSpawn(request);
    REQUIRE(pipe.ReadReadyPid() == process.pid);
    const ProcessInfo info = ReadProcess(process.pid).value();
    CHECK(info.session == (new_session ? process.pid : ::getsid(0)));
    CHECK(info.group == (new_session ? process.pid : ::getpgrp()));
    CHECK(info.parent == ::getpid());
    REQUIRE(process.pidfd.Signal(SIGKILL).has_value());
    CHECK(process.pidfd.Wait().value() == ExitStatus{ExitStatus::Kind::kSignaled, SIGKILL, false});
  }
}

// The launcher blocks, handles and ignores signals of its own; none of that may reach the worker.
TEST_CASE("signals are as at the launcher's start in the worker") {
  CHECK(InFork([] {
          ::signal(SIGHUP, SIG_IGN);   // nohup
          ::signal(SIGPIPE, SIG_IGN);  // Python's way, which it takes back for its children.
          ::signal(SIGCHLD, SIG_IGN);  // A careless parent.
          sigset_t blocked;
          ::sigemptyset(&blocked);
          ::sigaddset(&blocked, SIGWINCH);
          ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
          SpawnRequest request = MakeRequest({"/bin/cat", "/proc/self/status"});
          // From here on it behaves as an agent.
          ::signal(SIGTERM, [](int) {});
          ::signal(SIGUSR1, SIG_IGN);
          ::sigaddset(&blocked, SIGUSR2);
          ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
          LinePipe pipe;
          const std::string text = OutputOf(request, pipe);
          const bool same_mask_after = [] {
            sigset_t now;
            ::sigprocmask(SIG_SETMASK, nullptr, &now);
            return ::sigismember(&now, SIGUSR2) == 1 && ::sigismember(&now, SIGTERM) == 0;
          }();
          return StatusField(text, "SigIgn") == "0000000000000001" &&          // SIGHUP alone.
                         StatusField(text, "SigBlk") == "0000000008000000" &&  // SIGWINCH alone.
                         StatusField(text, "SigCgt") == "0000000000000000" && same_mask_after
                     ? 0
                     : 1;
        }) == 0);
}

TEST_CASE("a hang-up ignored under nohup is ignored by the worker itself") {
  CHECK(InFork([] {
          ::signal(SIGHUP, SIG_IGN);
          LinePipe pipe;
          SpawnedProcess process =
              MustSpawn(MakeWorker({"ready", "kill", "1", "exit", "5"}, &pipe.write_end()));
          return process.pidfd.Wait().value().exit_code() == 5 ? 0 : 1;
        }) == 0);
}

// The parent of the worker is a copy of the test that is killed as soon as the worker is ready.
TEST_CASE("the worker dies with the launcher") {
  test::BecomeSubreaper();
  LinePipe pipe;
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    const Expected<SpawnedProcess> process =
        Spawn(MakeWorker({"ignore", "ready", "pause"}, &pipe.write_end()));
    ::_exit(process && ::pause() != 0 ? 0 : 1);
  }
  const pid_t worker = pipe.ReadReadyPid();
  REQUIRE(worker != launcher);
  REQUIRE(::kill(launcher, SIGKILL) == 0);
  CHECK(test::AllChildrenEnd());
}

TEST_CASE("a worker whose launcher died before it could ask for the signal does not start") {
  LinePipe pipe;
  const std::array<const char*, 3> argv = {"/bin/echo", "started", nullptr};
  const std::array<const char*, 1> environment = {nullptr};
  ChildPlan plan;
  plan.candidates = argv.data();
  plan.argv = argv.data();
  plan.environment = environment.data();
  plan.streams = {-1, pipe.write_end().get(), -1};
  plan.parent_death_signal = SIGKILL;
  plan.parent = ::getpid() + 1;  // Somebody else has become the parent meanwhile.
  const pid_t pid = VforkChild(plan);
  REQUIRE(pid > 0);
  CHECK(pipe.ReadAll().empty());
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(WEXITSTATUS(status) == 127);
}

TEST_CASE("without free descriptors the error says so") {
  CHECK(InFork([] {
          const rlimit limit = {3, 3};
          const SpawnRequest request = MakeRequest({"/bin/true"});
          if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            return 2;
          }
          const Expected<SpawnedProcess> process = Spawn(request);
          return !process && process.error().message == "worker 3: pipe: too many open files" ? 0
                                                                                              : 1;
        }) == 0);
}

TEST_CASE("a worker joins the cgroup itself where clone3 does not exist") {
  Expected<JobCgroup> cgroup = JobCgroup::PathFor(RandomSuffix()).and_then(&JobCgroup::Create);
  if (!cgroup) {
    WARN("skipped: " << cgroup.error().message);
    return;
  }
  static const JobCgroup* shared = nullptr;
  shared = &*cgroup;
  CHECK(InFork([] {
          ForbidSystemCall(SYS_clone3);
          LinePipe pipe;
          SpawnRequest request = MakeRequest({"/bin/cat", "/proc/self/cgroup"});
          request.cgroup = &shared->directory();
          const std::string name = shared->path().substr(shared->path().rfind('/'));
          return OutputOf(request, pipe).find(name + "\n") != std::string::npos ? 0 : 1;
        }) == 0);
  CHECK(test::Eventually([&] { return cgroup->Remove().has_value(); }));
}

TEST_CASE("another parent-death signal can be chosen, or none") {
  for (const int signal : {0, SIGUSR1}) {
    LinePipe pipe;
    SpawnRequest request = MakeRequest(
        {"/usr/bin/python3", "-S", "-c",
         "import ctypes; x = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(x)); "
         "print(x.value)"});
    request.parent_death_signal = signal;
    CHECK(OutputOf(request, pipe) == std::to_string(signal) + "\n");
  }
}

TEST_CASE("a signal that arrives while a worker is spawned is handled once, by the launcher") {
  static volatile std::sig_atomic_t calls = 0;
  static pid_t handler_pid = 0;
  struct sigaction before = {};
  struct sigaction action = {};
  action.sa_handler = [](int) {
    calls = calls + 1;
    handler_pid = ::getpid();
  };
  const SpawnRequest request = MakeRequest({"/bin/true"});
  REQUIRE(::sigaction(SIGUSR1, &action, &before) == 0);
  for (int i = 0; i < 20; ++i) {
    std::thread sender([] { ::kill(::getpid(), SIGUSR1); });
    CHECK(MustSpawn(request).pidfd.Wait().value().success());
    sender.join();
  }
  CHECK(calls > 0);
  CHECK(calls <= 20);
  CHECK(handler_pid == ::getpid());
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("workers do not wait for one another's start-up") {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<SpawnedProcess> workers;
  for (int i = 0; i < 8; ++i) {
    workers.push_back(MustSpawn(MakeRequest({"/bin/sleep", "0.5"})));
  }
  for (SpawnedProcess& worker : workers) {
    CHECK(worker.pidfd.Wait().value().success());
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  CHECK(spent.count() < 3.5);  // One after the other would take 4 s.
}

TEST_CASE("spawning while other threads start and end leaves them alone") {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&stop] {
      while (!stop) {
        std::string text(4096, 'x');
        std::thread([&text] { text.assign(8192, 'y'); }).join();
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    CHECK(MustSpawn(MakeRequest({"/bin/true"})).pidfd.Wait().value().success());
  }
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace ddprun
