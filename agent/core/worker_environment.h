#pragma once

// The variables that every worker gets (torch 2.15.0, LocalElasticAgent._start_workers, and what
// ours adds). Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/rank_assignment.h"

namespace ddprun {

using EnvironmentMap = std::map<std::string, std::string, std::less<>>;

// What all workers of an attempt on this node share.
struct GroupEnvironment {
  std::string role = "default";
  std::string run_id = "none";
  RankAssignment ranks;
  std::string master_addr;
  std::uint16_t master_port = 0;
  std::uint32_t restart_count = 0;
  std::uint32_t max_restarts = 0;
  bool use_agent_store = true;
  std::optional<std::uint32_t> omp_num_threads;  // Only when the launcher's environment has none.
  std::string signals_to_handle;                 // TORCHELASTIC_SIGNALS_TO_HANDLE, as given.
  std::string timer_file;  // Empty: what the launcher has, if anything, is passed on.
};

// What one worker gets in addition.
struct WorkerVariables {
  std::uint32_t local_rank = 0;
  std::string error_file;
  EnvironmentMap overrides;  // Devices, the job marker; applied last.
};

// The complete environment of one worker: the launcher's own (`base`), then the contract, then the
// overrides. Rank variables inherited from an outer launcher never survive.
EnvironmentMap WorkerEnvironment(const EnvironmentMap& base, const GroupEnvironment& group,
                                 const WorkerVariables& worker);

// "NAME=value" for every entry, in the order of the names.
std::vector<std::string> ToEnvironmentBlock(const EnvironmentMap& environment);

}  // namespace ddprun
