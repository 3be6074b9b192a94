#pragma once

// The child's half of InventoryReader; see inventory_reader.h.

#include <sys/types.h>

#include "agent/gpu/inventory_reader.h"

namespace ddprun {

// Runs in the forked child: asks NVML (or, without its library, the kernel), writes the inventory
// to `pipe` and ends the process. `parent` is the pid that forked it.
[[noreturn]] void RunInventoryChild(const InventoryOptions& options, UniqueFd pipe, pid_t parent);

}  // namespace ddprun
