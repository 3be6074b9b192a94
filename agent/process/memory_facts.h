#pragma once

// Reads MemoryFacts (agent/core/memory_facts.h) from the kernel's files: cgroup v2, v1 and hybrid
// mounts (cgroups(7)), core(5), statvfs(3). Called by the agent on its thread, once before the
// workers start and once after a failure; a handful of small reads, none of which can block.

#include <string>

#include "agent/core/memory_facts.h"

namespace ddprun {

// Where to look; tests point it at a tree of their own.
struct MemoryFactPaths {
  std::string cgroup = "/proc/self/cgroup";
  std::string mountinfo = "/proc/self/mountinfo";
  std::string core_pattern = "/proc/sys/kernel/core_pattern";
  std::string core_uses_pid = "/proc/sys/kernel/core_uses_pid";
  std::string shared_memory = "/dev/shm";
};

// Never fails: what cannot be read is left empty.
MemoryFacts ReadMemoryFacts(const MemoryFactPaths& paths = {});

}  // namespace ddprun
