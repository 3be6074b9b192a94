#include "agent/core/worker_blueprint.h"

#include <utility>

#include "rendezvous/base/check.h"

namespace ddprun {
namespace {

GroupEnvironment GroupOf(const WorkerBlueprint& blueprint, const RoundView& round) {
  GroupEnvironment group;
  group.role = blueprint.role;
  group.run_id = blueprint.run_id;
  group.ranks = round.ranks;
  group.master_addr = round.master_addr;
  group.master_port = round.master_port;
  group.restart_count = round.restart_count;
  group.max_restarts = blueprint.max_restarts;
  group.use_agent_store = blueprint.use_agent_store;
  group.omp_num_threads = blueprint.omp_num_threads;
  group.signals_to_handle = blueprint.signals_to_handle;
  group.timer_file = blueprint.timer_file;
  return group;
}

}  // namespace

std::vector<WorkerSpec> BuildWorkerSpecs(const WorkerBlueprint& blueprint, const RoundView& round,
                                         const std::vector<WorkerLogs>& logs) {
  DDP_CHECK(logs.size() == blueprint.workers.size());
  const GroupEnvironment group = GroupOf(blueprint, round);
  std::vector<WorkerSpec> specs;
  for (std::size_t i = 0; i < blueprint.workers.size(); ++i) {
    const LocalWorker& worker = blueprint.workers[i];
    WorkerSpec spec;
    spec.local_rank = static_cast<std::uint32_t>(i);
    spec.global_rank = round.ranks.global_rank_base + spec.local_rank;
    spec.argv = worker.argv;
    spec.environment = ToEnvironmentBlock(
        WorkerEnvironment(blueprint.base_environment, group,
                          {spec.local_rank, logs[i].error_file, worker.overrides}));
    spec.null_stdin = worker.null_stdin;
    spec.new_session = blueprint.new_session;
    spec.out = logs[i].out;
    spec.err = logs[i].err;
    spec.error_file = logs[i].error_file;
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace ddprun
