#pragma once

#include <string>

namespace ddprun {

// The node's name as set with sethostname(2). No resolver is asked for a longer one.
std::string Hostname();

}  // namespace ddprun
