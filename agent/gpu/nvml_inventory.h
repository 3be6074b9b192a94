#pragma once

// Asks NVML for the GPUs of this machine. Runs in the child process of inventory_reader.cc, because
// any call may block for ever; works on any NvmlTable, so that tests can hand in their own
// functions.
//
// One sick GPU never stops the others: NVML counts it, its handle fails with 15 or 16, and the rest
// of the list is good. What the answers mean: 3, 13, 21, 25, 26 the feature is absent, no word of
// it; 4, 17 this container may not, said once; all else is a finding, one warning each.

#include <functional>
#include <string_view>

#include "agent/gpu/device_inventory.h"
#include "agent/gpu/nvml_table.h"

namespace ddprun {

// Told what is about to be done ("GPU 3"), so that a hang has a name.
using NvmlProgress = std::function<void(std::string_view stage)>;

DeviceInventory ReadNvmlInventory(const NvmlTable& nvml, const NvmlProgress& progress);

}  // namespace ddprun
