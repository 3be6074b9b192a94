#pragma once

// --dry-run: what would be started, for people.

#include <string>

#include "launcher/config/environment.h"
#include "launcher/launch_plan.h"

namespace ddprun {

// Per worker: the command as a shell would read it, its devices, its output, and every variable in
// which its environment differs from the launcher's own. What is only known at a start (a free
// port, a folder's name) is shown as such.
std::string FormatDryRun(const LaunchPlan& plan, const Environment& environment);

}  // namespace ddprun
