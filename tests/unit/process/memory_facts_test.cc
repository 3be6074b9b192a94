#include "agent/process/memory_facts.h"

#include <sys/resource.h>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace ddprun {
namespace {

MemoryFactPaths PathsIn(const TempDir& dir) {
  MemoryFactPaths paths;
  paths.cgroup = dir.Path("cgroup");
  paths.mountinfo = dir.Path("mountinfo");
  paths.core_pattern = dir.Path("core_pattern");
  paths.core_uses_pid = dir.Path("core_uses_pid");
  paths.shared_memory = dir.Path("shm");
  return paths;
}

std::string Mount(const TempDir& dir, const std::string& root, const std::string& point,
                  const std::string& type) {
  return "30 23 0:26 " + root + " " + dir.Path(point) + " rw,nosuid shared:4 - " + type + "\n";
}

TEST_CASE("version 2: the kills and the peak are our cgroup's, the limit the tightest above") {
  const TempDir dir;
  dir.Write("cgroup", "0::/pod/job\n");
  dir.Write("mountinfo",
            "1 1 0:1 / /proc rw - proc proc rw\n" + Mount(dir, "/", "fs", "cgroup2 x rw"));
  dir.Write("fs/pod/job/memory.events", "low 0\noom 9\noom_kill 3\noom_group_kill 7\n");
  dir.Write("fs/pod/job/memory.peak", "2048\n");
  dir.Write("fs/pod/job/memory.max", "max\n");
  dir.Write("fs/pod/memory.max", "4096\n");
  dir.Write("fs/memory.max", "8192\n");
  const MemoryFacts facts = ReadMemoryFacts(PathsIn(dir));
  CHECK(facts.oom_kills == 3U);
  CHECK(facts.memory_peak == 2048U);
  CHECK(facts.memory_limit == 4096U);
  CHECK(facts.cgroup_problem.empty());
}

TEST_CASE("version 2 in a container: the mounted root is our own cgroup") {
  const TempDir dir;
  dir.Write("cgroup", "0::/docker/abc\n");
  dir.Write("mountinfo", Mount(dir, "/docker/abc", "fs", "cgroup2 x rw"));
  dir.Write("fs/memory.events", "oom_kill 1\n");
  CHECK(ReadMemoryFacts(PathsIn(dir)).oom_kills == 1U);
  // The same prefix, another cgroup; and one outside of the namespace's root.
  for (const char* other : {"0::/docker/abcd\n", "0::/../other\n", "0::nonsense\n"}) {
    CAPTURE(other);
    dir.Write("cgroup", other);
    CHECK(ReadMemoryFacts(PathsIn(dir)).oom_kills == 1U);
  }
}

TEST_CASE("version 1 and hybrid mounts: the memory controller's hierarchy counts") {
  const TempDir dir;
  dir.Write("cgroup", "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n");
  dir.Write("mountinfo", Mount(dir, "/", "unified", "cgroup2 cgroup2 rw") +
                             Mount(dir, "/", "cpu", "cgroup cgroup rw,cpu") +
                             Mount(dir, "/", "mem\\040ory", "cgroup cgroup rw,memory,cpu"));
  dir.Write("mem ory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  dir.Write("mem ory/job/memory.max_usage_in_bytes", "77\n");
  dir.Write("mem ory/job/memory.stat", "cache 1\nhierarchical_memory_limit 4096\n");
  dir.Write("mem ory/job/memory.limit_in_bytes", "9223372036854771712\n");
  MemoryFacts facts = ReadMemoryFacts(PathsIn(dir));
  CHECK(facts.oom_kills == 5U);
  CHECK(facts.memory_peak == 77U);
  CHECK(facts.memory_limit == 4096U);
  dir.Write("mem ory/job/memory.stat", "hierarchical_memory_limit 9223372036854771712\n");
  facts = ReadMemoryFacts(PathsIn(dir));
  CHECK_FALSE(facts.memory_limit.has_value());
}

TEST_CASE("what is missing is said, never a failure") {
  const TempDir dir;
  CHECK(ReadMemoryFacts(PathsIn(dir)).cgroup_problem == "no memory cgroup");
  dir.Write("cgroup", "0::/x\nnonsense\n::\n");
  dir.Write("mountinfo", "short line\n- - - - - -\n");
  CHECK(ReadMemoryFacts(PathsIn(dir)).cgroup_problem == "the memory cgroup is not mounted");
  dir.Write("mountinfo", Mount(dir, "/", "fs", "cgroup2 x rw"));
  CHECK(ReadMemoryFacts(PathsIn(dir)).cgroup_problem ==
        "'" + dir.Path("fs") + "/x' has no counter of OOM kills");
  dir.Write("fs/x/memory.events", "oom_kill many\n");
  CHECK_FALSE(ReadMemoryFacts(PathsIn(dir)).oom_kills.has_value());
  CHECK_FALSE(ReadMemoryFacts(PathsIn(dir)).shared_memory.has_value());
}

TEST_CASE("shared memory is the mount's size and use") {
  const TempDir dir;
  dir.Write("shm/x", "x");
  const MemoryFacts facts = ReadMemoryFacts(PathsIn(dir));
  REQUIRE(facts.shared_memory.has_value());
  CHECK(facts.shared_memory->size >= facts.shared_memory->used);
  CHECK(facts.shared_memory->size > 0);
  CHECK(facts.shared_memory_path == dir.Path("shm"));
}

TEST_CASE("the core pattern and limit are read as they are") {
  const TempDir dir;
  dir.Write("core_pattern", "|/usr/bin/handler %p\n");
  dir.Write("core_uses_pid", "1\n");
  struct rlimit old {};
  REQUIRE(::getrlimit(RLIMIT_CORE, &old) == 0);
  const struct rlimit none { 0, old.rlim_max };
  REQUIRE(::setrlimit(RLIMIT_CORE, &none) == 0);
  const MemoryFacts facts = ReadMemoryFacts(PathsIn(dir));
  REQUIRE(::setrlimit(RLIMIT_CORE, &old) == 0);
  CHECK(facts.core_pattern == "|/usr/bin/handler %p");
  CHECK(facts.core_uses_pid);
  CHECK(facts.core_limit == 0U);
}

TEST_CASE("this machine's own files are read without a complaint") {
  const MemoryFacts facts = ReadMemoryFacts();
  CHECK(facts.oom_kills.has_value() == facts.cgroup_problem.empty());
  CHECK(facts.shared_memory_path == "/dev/shm");
}

}  // namespace
}  // namespace ddprun
