#pragma once

// MemoryFacts: what the kernel tells about memory, shared memory and core files at one moment. Read
// by agent/process/memory_facts.h, once before the workers start and once after a failure; the
// comparison is here. Pure values.

#include <cstdint>
#include <optional>
#include <string>

namespace ddprun {

struct SharedMemoryUse {
  std::uint64_t size = 0;  // Bytes of the mount.
  std::uint64_t used = 0;  // Bytes in use.
};

struct MemoryFacts {
  // Of our own memory cgroup, which the workers share or are below of. nullopt: not readable, and
  // `cgroup_problem` says why.
  std::optional<std::uint64_t> oom_kills;
  std::string cgroup_problem;
  std::optional<std::uint64_t> memory_limit;  // Bytes, the tightest of the cgroup and those above.
  std::optional<std::uint64_t> memory_peak;   // Bytes, of our own cgroup (kernel 5.19, or v1).

  std::string shared_memory_path;  // "/dev/shm".
  std::optional<SharedMemoryUse> shared_memory;

  std::optional<std::uint64_t> core_limit;  // RLIMIT_CORE, bytes; nullopt: unlimited.
  std::string core_pattern;                 // core(5); empty when not readable.
  bool core_uses_pid = false;
};

// OOM kills that the cgroup counted between the two readings; 0 when either is unknown.
std::uint64_t OomKillsBetween(const MemoryFacts& before, const MemoryFacts& after);

// "the kernel's OOM killer ended 1 process in this job's memory cgroup (limit 2.0 GiB, peak 2.0
// GiB)"; empty when it ended none.
std::string DescribeOomKills(const MemoryFacts& before, const MemoryFacts& after);

// "/dev/shm: 64.0 MiB in size, 63.9 MiB in use now"; empty when unknown.
std::string DescribeSharedMemory(const MemoryFacts& facts);

// What core(5) says about a core file of `pid`, which ended by a signal that writes one. Empty when
// there is nothing to say.
std::string DescribeCoreFile(const MemoryFacts& facts, int pid, bool core_dumped);

// The warning before a start: container runtimes give 64 MB of shared memory, which is too little
// for data loaders on more than one rank. Empty when there is enough.
std::string SmallSharedMemoryWarning(const MemoryFacts& facts, std::uint32_t local_world_size);

// "512 B", "64.0 MiB", "2.0 GiB".
std::string DescribeBytes(std::uint64_t bytes);

}  // namespace ddprun
