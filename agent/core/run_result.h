#pragma once

// RunResult: how a worker group ended on this node (torch: elastic.agent.RunResult).

#include <cstdint>
#include <string>
#include <vector>

#include "agent/core/process_failure.h"

namespace ddprun {

// The state of a worker group, which changes as a unit (torch: elastic.agent.WorkerState).
enum class WorkerState { kInit, kHealthy, kUnhealthy, kStopped, kSucceeded, kFailed, kUnknown };

// How one worker of the last attempt ended.
struct WorkerOutcome {
  std::uint32_t local_rank = 0;
  ExitStatus status;
  bool stopped_by_agent = false;  // It was still running when the group was stopped.
  bool killed_by_agent = false;   // It outlived the grace and was sent SIGKILL.
};

struct RunResult {
  WorkerState state = WorkerState::kUnknown;
  std::uint32_t attempts = 0;  // How many times the group was started.
  int signal = 0;              // The handled signal that ended the job, or 0.
  bool before_start = false;   // With `signal`: no worker had ever been started.
  std::vector<WorkerOutcome>
      outcomes;            // Of the last attempt, in the order in which the workers ended.
  std::string reason;      // When there is no worker to blame: one sentence.
  bool leftovers = false;  // Something of the tree could not be killed.
};

}  // namespace ddprun
