#pragma once

// WorkerBlueprint: what stays the same for the workers of this node through all attempts. With a
// round and its log places it becomes one WorkerSpec per local rank. Pure, so that --dry-run shows
// exactly what would be started.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/logs_specs.h"
#include "agent/core/worker_environment.h"
#include "agent/core/worker_spec.h"
#include "rendezvous/core/rank_assignment.h"

namespace ddprun {

// One local rank.
struct LocalWorker {
  std::vector<std::string> argv;  // Templates such as ${local_rank} are filled in already.
  EnvironmentMap overrides;       // Devices, the job marker: over everything else.
  bool null_stdin = false;
};

struct WorkerBlueprint {
  EnvironmentMap base_environment;   // The launcher's own.
  std::vector<LocalWorker> workers;  // By local rank.
  std::string role = "default";
  std::string run_id = "none";
  std::uint32_t max_restarts = 0;
  std::optional<std::uint32_t> omp_num_threads;
  std::string signals_to_handle;
  std::string timer_file;
  bool use_agent_store = true;
  bool new_session = true;
};

// A round, as far as the workers see it.
struct RoundView {
  RankAssignment ranks;
  std::string master_addr;
  std::uint16_t master_port = 0;
  std::uint32_t restart_count = 0;
};

// `logs` has one element per local rank.
std::vector<WorkerSpec> BuildWorkerSpecs(const WorkerBlueprint& blueprint, const RoundView& round,
                                         const std::vector<WorkerLogs>& logs);

}  // namespace ddprun
