#pragma once

// What LaunchConfig leaves open until the machine's devices are known. Pure functions.

#include <cstdint>
#include <optional>

#include "launcher/config/launch_config.h"
#include "rendezvous/base/error.h"

namespace ddprun {

// What to set OMP_NUM_THREADS to; nullopt: leave it alone (the user has set it, or one worker).
std::optional<std::uint32_t> ResolveOmpNumThreads(const LaunchConfig& config,
                                                  std::uint32_t local_world_size,
                                                  std::uint32_t allowed_cpus);

// Checks that need the number of local workers: --stdin must name one of them.
Expected<void> CheckLocalWorldSize(const LaunchConfig& config, std::uint32_t local_world_size);

}  // namespace ddprun
