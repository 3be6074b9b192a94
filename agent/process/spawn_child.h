#pragma once

// The half of Spawn that runs in the child before exec. Private to spawner.cc. The child shares the
// launcher's memory (CLONE_VM) while other threads of the launcher run, so nothing here may
// allocate, lock, or touch anything but this plan and the child's own stack: raw system calls only.

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ddprun {

enum class SpawnStage : std::int32_t {
  kCgroup,
  kSession,
  kParentDeath,
  kStandardStreams,
  kCloseDescriptors,
  kExec,
};

// What the child reports over its close-on-exec pipe. Only a failed kCgroup lets it go on.
struct SpawnReport {
  SpawnStage stage;
  std::int32_t errno_value;
  std::int32_t candidate;  // kExec: which of `candidates` the errno belongs to.
};

// Prepared by the launcher, read by the child. Signal sets are the kernel's: bit n-1 for signal n.
struct ChildPlan {
  const char* const* candidates = nullptr;  // What to exec: the first that works; ends with null.
  const char* const* argv = nullptr;
  const char* const* environment = nullptr;
  std::array<int, 3> streams = {-1, -1, -1};  // For 0-2; -1: leave it.
  const int* keep_open = nullptr;
  std::size_t keep_open_count = 0;
  int cgroup_procs = -1;  // Write end of cgroup.procs, where the clone itself could not join.
  int report = -1;        // At least 3.
  bool new_session = true;
  int parent_death_signal = 0;
  pid_t parent = -1;
  std::uint64_t ignored_signals = 0;
  std::uint64_t signal_mask = 0;
};

[[noreturn]] void RunChild(const ChildPlan& plan);

}  // namespace ddprun
