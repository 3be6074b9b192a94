#pragma once

// What is said and recorded when the agent is done, and the exit code that follows
// (docs/torchrun-compat.md).

#include <string>

#include "agent/core/memory_facts.h"
#include "agent/node_agent.h"
#include "launcher/config/launch_config.h"
#include "launcher/launch_plan.h"

namespace ddprun {

// The parts of a launch that the last words are made of.
struct LaunchFacts {
  const LaunchConfig& config;
  const LaunchPlan& plan;
  MemoryFacts before;  // From before the workers started.
};

struct Conclusion {
  std::string text;       // For stderr; empty after success.
  std::string root_line;  // One line for the log; empty when no worker is to blame.
  std::vector<std::string> warnings;
  int exit_code = 0;
  int die_by_signal = 0;  // Instead of exiting: the signal was not one to be handled.
};

// Also writes the launcher's own error file (TORCHELASTIC_ERROR_FILE).
Conclusion Conclude(const LaunchFacts& facts, const NodeAgentResult& result);

// The line for the log about an attempt that is followed by another.
std::string DescribeFailedAttempt(const LaunchPlan& plan,
                                  const std::vector<ProcessFailure>& failures);

// The same record for an error of the launcher itself, before or without any worker.
std::vector<std::string> RecordLauncherError(const LaunchConfig& config,
                                             const std::string& message);

}  // namespace ddprun
