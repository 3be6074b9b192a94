#include "launcher/config/resolve.h"

#include <unistd.h>

#include <array>

#include "launcher/config/this_machine.h"
#include "tests/unit/config/config_support.h"

namespace ddprun {
namespace {

TEST_CASE("OMP_NUM_THREADS is shared out, once, and never touched when set (case 91)") {
  const LaunchConfig ours = Parsed({"s"});
  CHECK(ResolveOmpNumThreads(ours, 1, 2) == std::nullopt);
  CHECK(ResolveOmpNumThreads(ours, 2, 2) == 1);
  CHECK(ResolveOmpNumThreads(ours, 2, 9) == 4);
  CHECK(ResolveOmpNumThreads(ours, 4, 2) == 1);
  const LaunchConfig torchrun = Parsed({"s"}, {}, "torchrun");
  CHECK(ResolveOmpNumThreads(torchrun, 2, 8) == 1);
  CHECK(ResolveOmpNumThreads(torchrun, 1, 8) == std::nullopt);
  CHECK(ResolveOmpNumThreads(Parsed({"--omp-num-threads=6", "s"}), 1, 2) == 6);
  CHECK(ResolveOmpNumThreads(Parsed({"s"}, {{"OMP_NUM_THREADS", ""}}), 4, 8) == std::nullopt);
}

TEST_CASE("--stdin names a rank that exists") {
  CHECK(CheckLocalWorldSize(Parsed({"--stdin=1", "s"}), 2));
  CHECK(CheckLocalWorldSize(Parsed({"--stdin=all", "s"}), 1));
  const auto refused = CheckLocalWorldSize(Parsed({"--stdin=2", "s"}), 2);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("--stdin=2: there are 2 local workers") == 0);
}

TEST_CASE("this machine is known by loopback, name and addresses") {
  for (const char* host : {"localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}) {
    CAPTURE(host);
    CHECK(IsLoopbackHost(host));
    CHECK(NamesThisMachine(host));
  }
  for (const char* host : {"192.0.2.1", "2001:db8::1", ""}) {
    CAPTURE(host);
    CHECK_FALSE(IsLoopbackHost(host));
  }
  CHECK_FALSE(NamesThisMachine("192.0.2.1"));
  std::array<char, 256> name{};
  REQUIRE(::gethostname(name.data(), name.size() - 1) == 0);
  CHECK(NamesThisMachine(name.data()));
}

TEST_CASE("the environment of the process is read whole") {
  const Environment environment = Environment::OfProcess();
  CHECK(environment.Get("PATH").has_value());
  CHECK_FALSE(environment.Get("DDPRUN_NO_SUCH_VARIABLE").has_value());
  CHECK(environment.IsThisMachine("localhost"));
}

}  // namespace
}  // namespace ddprun
