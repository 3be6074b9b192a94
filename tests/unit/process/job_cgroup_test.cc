#include "agent/process/job_cgroup.h"

#include <algorithm>

#include "rendezvous/base/random_id.h"
#include "tests/support/process.h"

namespace ddprun {
namespace {

using test::LinePipe;
using test::MakeWorker;
using test::MustSpawn;

TEST_CASE("our own cgroup is found in every way that v2 is mounted") {
  const std::string pure = "25 30 0:23 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
  CHECK(FindOwnCgroup(pure, "0::/user.slice/a.scope\n") == "/sys/fs/cgroup/user.slice/a.scope");
  CHECK(FindOwnCgroup(pure, "0::/\n") == "/sys/fs/cgroup");

  const std::string hybrid =
      "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
      "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  CHECK(FindOwnCgroup(hybrid, "8:memory:/x\n1:cpu:/\n0::/job\n") == "/sys/fs/cgroup/unified/job");

  // A container of an older kind: only its own part of the hierarchy is mounted.
  const std::string part = "25 30 0:23 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
  CHECK(FindOwnCgroup(part, "0::/docker/abc\n") == "/sys/fs/cgroup");
  CHECK(FindOwnCgroup(part, "0::/docker/abc/job\n") == "/sys/fs/cgroup/job");
  CHECK_FALSE(FindOwnCgroup(part, "0::/docker/abcd\n").has_value());

  const std::string escaped = "25 30 0:23 / /mnt/a\\040b rw - cgroup2 none rw\n";
  CHECK(FindOwnCgroup(escaped, "0::/x\n") == "/mnt/a b/x");
}

TEST_CASE("no usable v2 hierarchy is no cgroup") {
  const std::string v1 = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
  const std::string v2 = "25 30 0:23 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  CHECK_FALSE(FindOwnCgroup(v1, "8:memory:/x\n").has_value());
  CHECK_FALSE(FindOwnCgroup(v1, "8:memory:/x\n0::/\n").has_value());
  CHECK_FALSE(FindOwnCgroup("", "0::/\n").has_value());
  CHECK_FALSE(FindOwnCgroup(v2, "").has_value());
  CHECK_FALSE(FindOwnCgroup(v2, "0::/../other\n").has_value());  // Outside of our namespace's root.
  CHECK_FALSE(FindOwnCgroup("25 30 0:23 / /x rw -\n", "0::/\n").has_value());
}

TEST_CASE("what is no cgroup cannot be opened as one") {
  CHECK(JobCgroup::Open("/tmp").error().code == ErrorCode::kInvalidArgument);
  CHECK(JobCgroup::Open("/nowhere").error().code == ErrorCode::kNotFound);
}

TEST_CASE("a worker is born in the job's cgroup and dies with it") {
  Expected<JobCgroup> cgroup = JobCgroup::PathFor(RandomSuffix()).and_then(&JobCgroup::Create);
  if (!cgroup) {
    WARN("skipped: " << cgroup.error().message);
    return;
  }
  LinePipe pipe;
  SpawnRequest request =
      MakeWorker({"ready", "fork", "setsid", "ready", "pause"}, &pipe.write_end());
  request.cgroup = &cgroup->directory();
  SpawnedProcess process = MustSpawn(request);
  CHECK(process.cgroup_error == 0);
  const pid_t leader = pipe.ReadReadyPid();
  const pid_t grandchild = pipe.ReadReadyPid();
  const std::vector<pid_t> pids = cgroup->Pids();
  CHECK(leader == process.pid);
  CHECK(pids.size() == 2);
  CHECK(std::ranges::count(pids, leader) == 1);
  CHECK(std::ranges::count(pids, grandchild) == 1);
  CHECK_FALSE(cgroup->Remove().has_value());  // Occupied.
  test::BecomeSubreaper();
  CHECK(cgroup->Kill());
  CHECK(process.pidfd.Wait().value().value == SIGKILL);
  REQUIRE(test::AllChildrenEnd());
  REQUIRE(test::Eventually([&] { return cgroup->Remove().has_value(); }));
  CHECK_FALSE(std::filesystem::exists(cgroup->path()));
}

TEST_CASE("a cgroup that cannot be joined is said, and the worker runs all the same") {
  const UniqueFd folder(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  SpawnRequest request = MakeWorker({"exit", "0"});
  request.cgroup = &folder;
  SpawnedProcess process = MustSpawn(request);
  CHECK(process.cgroup_error == ENOENT);  // There is no /tmp/cgroup.procs.
  CHECK(process.pidfd.Wait().value().success());
}

}  // namespace
}  // namespace ddprun
