#pragma once

// Who holds a TCP port of this machine: read from /proc/net/tcp, tcp6 and the descriptors of all
// processes that we may look at (proc(5)). For error messages only; it takes milliseconds.

#include <cstdint>
#include <string>

namespace ddprun {

// "pid 123 (python train.py)"; "another process (owner not readable)" when /proc hides it.
std::string DescribePortOwner(std::uint16_t port);

}  // namespace ddprun
