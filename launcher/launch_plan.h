#pragma once

// LaunchPlan: everything that is decided before the first process is started, from a checked
// LaunchConfig and a look at the machine: interpreter, command, devices, environment. --dry-run
// prints it, Launch() carries it out.

#include <optional>
#include <string>
#include <vector>

#include "agent/gpu/device_selection.h"
#include "agent/node_agent.h"
#include "launcher/config/environment.h"
#include "launcher/config/launch_config.h"
#include "launcher/script/interpreter.h"
#include "launcher/script/rejected_local_rank.h"
#include "rendezvous/base/error.h"

namespace ddprun {

struct LaunchPlan {
  NodeAgentOptions agent;
  std::vector<WorkerDevices> devices;      // By local rank.
  std::optional<Interpreter> interpreter;  // None for --no-python.
  LaunchedCommand command;                 // As typed, for advice about the local-rank argument.
  std::vector<std::string> notes;          // Said at the start: what was decided for the user.
  std::vector<std::string> warnings;
};

// `words` is the whole command line, the program first. Starts no worker; the one process that it
// may start, the device probe, is gone when it returns.
Expected<LaunchPlan> MakeLaunchPlan(const LaunchConfig& config, const Environment& environment,
                                    const std::vector<std::string>& words);

}  // namespace ddprun
