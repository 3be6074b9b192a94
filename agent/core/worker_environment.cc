#include "agent/core/worker_environment.h"

namespace ddprun {
namespace {

// Set only where the user has not: the launcher's own value is passed on.
void SetDefault(EnvironmentMap& environment, std::string_view name, std::string_view value) {
  environment.emplace(std::string(name), std::string(value));
}

void SetRanks(EnvironmentMap& environment, const RankAssignment& ranks, std::uint32_t local_rank) {
  environment["LOCAL_RANK"] = std::to_string(local_rank);
  environment["RANK"] = std::to_string(ranks.global_rank_base + local_rank);
  environment["GROUP_RANK"] = std::to_string(ranks.group_rank);
  environment["ROLE_RANK"] = std::to_string(ranks.role_rank_base + local_rank);
  environment["LOCAL_WORLD_SIZE"] = std::to_string(ranks.local_world_size);
  environment["WORLD_SIZE"] = std::to_string(ranks.world_size);
  environment["GROUP_WORLD_SIZE"] = std::to_string(ranks.group_world_size);
  environment["ROLE_WORLD_SIZE"] = std::to_string(ranks.role_world_size);
}

}  // namespace

EnvironmentMap WorkerEnvironment(const EnvironmentMap& base, const GroupEnvironment& group,
                                 const WorkerVariables& worker) {
  EnvironmentMap environment = base;
  SetRanks(environment, group.ranks, worker.local_rank);
  environment["ROLE_NAME"] = group.role;
  environment["MASTER_ADDR"] = group.master_addr;
  environment["MASTER_PORT"] = std::to_string(group.master_port);
  environment["TORCHELASTIC_RESTART_COUNT"] = std::to_string(group.restart_count);
  environment["TORCHELASTIC_MAX_RESTARTS"] = std::to_string(group.max_restarts);
  environment["TORCHELASTIC_RUN_ID"] = group.run_id;
  environment["TORCHELASTIC_USE_AGENT_STORE"] = group.use_agent_store ? "True" : "False";
  environment["TORCHELASTIC_ERROR_FILE"] = worker.error_file;
  environment["TORCHELASTIC_SIGNALS_TO_HANDLE"] = group.signals_to_handle;
  if (!group.timer_file.empty()) {
    environment["TORCHELASTIC_TIMER_FILE"] = group.timer_file;
  }
  SetDefault(environment, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (group.omp_num_threads) {
    SetDefault(environment, "OMP_NUM_THREADS", std::to_string(*group.omp_num_threads));
  }
  // A crash by signal leaves the Python stacks on stderr. Python reads it as on unless empty.
  SetDefault(environment, "PYTHONFAULTHANDLER", "1");
  for (const auto& [name, value] : worker.overrides) {
    environment[name] = value;
  }
  return environment;
}

std::vector<std::string> ToEnvironmentBlock(const EnvironmentMap& environment) {
  std::vector<std::string> block;
  block.reserve(environment.size());
  for (const auto& [name, value] : environment) {
    block.push_back(name + "=" + value);
  }
  return block;
}

}  // namespace ddprun
