#pragma once

// What LaunchConfig leaves open until the machine's devices are known. Pure functions.

#include <cstdint>
#include <optional>

#include "launcher/config/launch_config.h"
#include "rendezvous/base/error.h"

namespace ddprun {

struct DeviceCounts {
  std::uint32_t gpus = 0;          // Of the pool: CUDA_VISIBLE_DEVICES narrowed by --gpus; 0: none.
  std::uint32_t allowed_cpus = 1;  // CPUs in the launcher's affinity mask.
};

// The number of local workers, at least 1. `gpu` without GPUs and `xpu` fail, as in torch.
Expected<std::uint32_t> ResolveNprocPerNode(const NprocPerNode& wanted, const DeviceCounts& counts);

// What to set OMP_NUM_THREADS to; nullopt: leave it alone (the user has set it, or one worker).
std::optional<std::uint32_t> ResolveOmpNumThreads(const LaunchConfig& config,
                                                  std::uint32_t local_world_size,
                                                  std::uint32_t allowed_cpus);

// Checks that need the number of local workers: --stdin must name one of them.
Expected<void> CheckLocalWorldSize(const LaunchConfig& config, std::uint32_t local_world_size);

}  // namespace ddprun
