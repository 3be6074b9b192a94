#include "agent/process/process_table.h"

#include <algorithm>

#include "agent/process/job_marker.h"
#include "tests/support/process.h"

namespace ddprun {
namespace {

using test::LinePipe;
using test::MakeWorker;
using test::MustSpawn;

constexpr const char* kTail =
    " S 10 20 30 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 7 0 12345 1000 10 18446744073709551615 1 1\n";

TEST_CASE("a stat line is read whatever the command's name holds") {
  for (const std::string name : {"python3", ") R 1 (", "a b\nc", ""}) {
    const auto info = ParseStat("42 (" + name + ")" + kTail);
    REQUIRE(info.has_value());
    CHECK(info->command == name);
    CHECK(info->pid == 42);
    CHECK(info->state == 'S');
    CHECK(info->parent == 10);
    CHECK(info->group == 20);
    CHECK(info->session == 30);
    CHECK(info->threads == 7);
    CHECK(info->start_time == 12345);
  }
}

TEST_CASE("what is not a stat line is nothing") {
  for (const std::string text : {"", "42", "42 (x", "42 )x(", "42 (x) S 1 2", "x (y) S 1 2 3"}) {
    CHECK_FALSE(ParseStat(text).has_value());
  }
  CHECK_FALSE(ParseStat("42 (x) SS" + std::string(kTail).substr(2)).has_value());
}

TEST_CASE("a zombie is not alive, unless other threads of it run") {
  ProcessInfo info;
  info.threads = 1;
  info.state = 'Z';
  CHECK_FALSE(info.alive());
  info.threads = 2;
  CHECK(info.alive());
  info.threads = 1;
  info.state = 'D';
  CHECK(info.alive());
}

TEST_CASE("a process whose main thread has ended is alive") {
  LinePipe pipe;
  SpawnedProcess process = MustSpawn(MakeWorker({"own-thread"}, &pipe.write_end()));
  pipe.ReadReadyPid();
  REQUIRE(test::Eventually([&] { return ReadProcess(process.pid)->state == 'Z'; }));
  CHECK(ReadProcess(process.pid)->alive());
  REQUIRE(process.pidfd.Signal(SIGKILL).has_value());
  CHECK(process.pidfd.Wait().has_value());
}

TEST_CASE("children are found, also of other threads") {
  LinePipe pipe;
  SpawnedProcess process;
  pid_t pid = -1;
  std::vector<pid_t> children;
  std::thread([&] {
    SpawnRequest request = MakeWorker({"ready", "pause"}, &pipe.write_end());
    request.parent_death_signal = 0;  // It would come when this thread ends.
    process = MustSpawn(request);
    pid = pipe.ReadReadyPid();
    children = ReadChildren(::getpid()).pids;
  }).join();
  CHECK(std::ranges::count(children, pid) == 1);
  CHECK(ReadProcess(pid)->parent == ::getpid());
  const auto all = ReadAllProcesses();
  CHECK(std::ranges::any_of(all, [&](const auto& info) { return info.pid == pid; }));
  REQUIRE(process.pidfd.Signal(SIGKILL).has_value());
  CHECK(process.pidfd.Wait().has_value());
}

TEST_CASE("a variable is read by its whole name") {
  LinePipe pipe;
  SpawnRequest request = MakeWorker({"ready", "pause"}, &pipe.write_end());
  request.environment = {"XA=1", "A=first = \n", "AB=2", "EMPTY="};
  SpawnedProcess process = MustSpawn(request);
  pipe.ReadReadyPid();
  CHECK(ReadEnvironmentVariable(process.pid, "A") == "first = \n");
  CHECK(ReadEnvironmentVariable(process.pid, "EMPTY") == "");
  CHECK_FALSE(ReadEnvironmentVariable(process.pid, "B").has_value());
  REQUIRE(process.pidfd.Signal(SIGKILL).has_value());
  CHECK(process.pidfd.Wait().has_value());
  CHECK_FALSE(ReadEnvironmentVariable(process.pid, "A").has_value());
}

TEST_CASE("a signal does not reach another process that has got the pid") {
  LinePipe pipe;
  SpawnedProcess process = MustSpawn(MakeWorker({"ready", "pause"}, &pipe.write_end()));
  pipe.ReadReadyPid();
  ProcessInfo other = *ReadProcess(process.pid);
  other.start_time -= 1;
  CHECK(SignalProcess(other, SIGKILL) == ESRCH);
  CHECK_FALSE(process.pidfd.ended());
  CHECK(SignalProcess(*ReadProcess(process.pid), SIGKILL) == 0);
  CHECK(process.pidfd.Wait().value().value == SIGKILL);
  CHECK(SignalProcess(other, SIGKILL) == ESRCH);
}

TEST_CASE("a job inside a job belongs to both") {
  const JobMarker outer("aa", "");
  const JobMarker inner("bb", "aa");
  CHECK(outer.assignment() == "DDPRUN_JOB_ID=aa");
  CHECK(inner.assignment() == "DDPRUN_JOB_ID=aa:bb");
  CHECK(outer.matches("aa"));
  CHECK(outer.matches("aa:bb"));
  CHECK(inner.matches("aa:bb"));
  CHECK_FALSE(inner.matches("aa"));
  CHECK_FALSE(outer.matches("a"));
  CHECK_FALSE(outer.matches("aaa:baa"));
  CHECK_FALSE(outer.matches(""));
}

}  // namespace
}  // namespace ddprun
