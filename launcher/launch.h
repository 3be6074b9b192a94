#pragma once

// One launch on this node, from a checked LaunchConfig to the exit code.

#include <string>
#include <vector>

#include "agent/process/start_signals.h"
#include "launcher/config/environment.h"
#include "launcher/config/launch_config.h"

namespace ddprun {

// Exit codes are torchrun's (docs/torchrun-compat.md). Called once, on the main thread, before any
// other exists.
// `words` is the whole command line, the program first.
int Launch(const LaunchConfig& config, const std::vector<std::string>& words,
           const Environment& environment, const StartSignals& start_signals);

}  // namespace ddprun
