#include "agent/process/pidfd.h"

#include "tests/support/process.h"

namespace ddprun {
namespace {

using test::LinePipe;
using test::MakeWorker;
using test::MustSpawn;

TEST_CASE("every way of ending is told by the pidfd") {
  const auto end_of = [](std::vector<std::string> steps) {
    return MustSpawn(MakeWorker(std::move(steps))).pidfd.Wait().value();
  };
  CHECK(end_of({"exit", "0"}) == ExitStatus{});
  CHECK(end_of({"exit", "255"}) == ExitStatus{ExitStatus::Kind::kExited, 255, false});
  CHECK(end_of({"kill", "9"}) == ExitStatus{ExitStatus::Kind::kSignaled, SIGKILL, false});
  CHECK(end_of({"kill", "15"}).exit_code() == -SIGTERM);
}

TEST_CASE("a pidfd is readable from death on, until and after the reaping") {
  LinePipe pipe;
  SpawnedProcess process = MustSpawn(MakeWorker({"ready", "pause"}, &pipe.write_end()));
  pipe.ReadReadyPid();
  CHECK_FALSE(process.pidfd.ended());
  CHECK_FALSE(process.pidfd.TryWait().value().has_value());
  REQUIRE(process.pidfd.Signal(SIGTERM).has_value());
  REQUIRE(test::Eventually([&] { return process.pidfd.ended(); }));
  CHECK(process.pidfd.Signal(SIGTERM).has_value());  // A zombie takes any signal.
  CHECK(process.pidfd.TryWait().value()->value == SIGTERM);
  CHECK(process.pidfd.ended());
}

TEST_CASE("after the reaping a second wait and a signal are errors") {
  SpawnedProcess process = MustSpawn(MakeWorker({"exit", "3"}));
  CHECK(process.pidfd.Wait().value().value == 3);
  CHECK(process.pidfd.Wait().error().cause.value() == ECHILD);
  CHECK(process.pidfd.Signal(SIGTERM).error().code == ErrorCode::kNotFound);
}

TEST_CASE("no pidfd for a process that does not exist") {
  CHECK(Pidfd::Open(0x3fffffff).error().code == ErrorCode::kNotFound);
}

TEST_CASE("a duplicate sees the same process and closes for itself") {
  LinePipe pipe;
  SpawnedProcess process = MustSpawn(MakeWorker({"pause"}));
  {
    const UniqueFd copy = process.pidfd.Duplicate().value();
    CHECK(copy.get() != process.pidfd.get());
    CHECK((::fcntl(copy.get(), F_GETFD) & FD_CLOEXEC) != 0);
  }
  REQUIRE(process.pidfd.Signal(SIGKILL).has_value());
  CHECK(process.pidfd.Wait().value().value == SIGKILL);
}

TEST_CASE("a stopped worker is not a dead one") {
  SpawnedProcess process = MustSpawn(MakeWorker({"stop", "exit", "4"}));
  siginfo_t info = {};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(process.pid), &info, WSTOPPED) == 0);
  CHECK_FALSE(process.pidfd.ended());
  REQUIRE(process.pidfd.Signal(SIGCONT).has_value());
  CHECK(process.pidfd.Wait().value().value == 4);
}

}  // namespace
}  // namespace ddprun
