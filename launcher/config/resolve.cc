#include "launcher/config/resolve.h"

#include <fmt/format.h>

#include <algorithm>

namespace ddprun {

std::optional<std::uint32_t> ResolveOmpNumThreads(const LaunchConfig& config,
                                                  std::uint32_t local_world_size,
                                                  std::uint32_t allowed_cpus) {
  using Kind = OmpNumThreads::Kind;
  if (config.variables.omp_num_threads_set) {
    return std::nullopt;
  }
  if (config.omp_num_threads.kind == Kind::kCount) {
    return config.omp_num_threads.count;
  }
  if (local_world_size <= 1) {
    return std::nullopt;
  }
  if (config.omp_num_threads.kind == Kind::kTorchrun) {
    return 1;
  }
  return std::max(allowed_cpus / local_world_size, 1U);
}

Expected<void> CheckLocalWorldSize(const LaunchConfig& config, std::uint32_t local_world_size) {
  const StdinRoute& route = config.stdin_route;
  if (route.kind == StdinRoute::Kind::kRank && route.local_rank >= local_world_size) {
    return Fail(ErrorCode::kOutOfRange,
                fmt::format("--stdin={}: there are {} local workers, ranks 0 to {}; name one of "
                            "them, 'all' or 'none'",
                            route.local_rank, local_world_size, local_world_size - 1));
  }
  return {};
}

}  // namespace ddprun
