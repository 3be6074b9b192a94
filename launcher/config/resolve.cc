#include "launcher/config/resolve.h"

#include <fmt/format.h>

#include <algorithm>

namespace ddprun {

Expected<std::uint32_t> ResolveNprocPerNode(const NprocPerNode& wanted,
                                            const DeviceCounts& counts) {
  using Kind = NprocPerNode::Kind;
  const std::uint32_t cpus = std::max(counts.allowed_cpus, 1U);
  switch (wanted.kind) {
    case Kind::kCount:
      return wanted.count;
    case Kind::kCpu:
      return cpus;
    case Kind::kAuto:
      return counts.gpus > 0 ? counts.gpus : cpus;
    case Kind::kPerGpu:
      return std::max(counts.gpus, 1U);
    case Kind::kGpu:
      if (counts.gpus == 0) {
        return Fail(
            ErrorCode::kFailedPrecondition,
            "--nproc-per-node=gpu: no GPU can be used here; give a number, 'cpu' or 'auto'");
      }
      return counts.gpus;
    case Kind::kXpu:
      break;
  }
  return Fail(
      ErrorCode::kFailedPrecondition,
      "--nproc-per-node=xpu: no XPU can be used here; give a number, 'cpu', 'gpu' or 'auto'");
}

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
