#pragma once

// The second half of parsing: from each option's text to a LaunchConfig. Its errors are torch's
// exceptions, one sentence each, exit code 1.

#include "launcher/config/argument_parser.h"
#include "launcher/config/environment.h"
#include "launcher/config/launch_config.h"
#include "launcher/config/raw_values.h"
#include "rendezvous/base/error.h"

namespace ddprun {

// Integers, floats and choices in `values` were checked while parsing. Checks run in torch's order,
// so that of two mistakes the same one is named.
Expected<LaunchConfig> BuildConfig(RawValues values, const ParsedArguments& arguments,
                                   const Environment& environment);

}  // namespace ddprun
