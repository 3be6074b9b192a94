#pragma once

// The steps of the device selection that deal with single devices: which are in the pool, how each
// is written for CUDA and for people. Pure; used by device_selection.cc.

#include <optional>
#include <string>

#include "agent/gpu/device_selection.h"
#include "agent/gpu/visible_devices.h"

namespace ddprun {

// The CUDA_DEVICE_ORDER that workers will run with.
DeviceOrder OrderOfWorkers(const DeviceRequest& request);

// CUDA_VISIBLE_DEVICES or all devices, narrowed by --gpus. Its entries of --gpus are numbers of
// devices (as in CUDA_VISIBLE_DEVICES, not places in that list) or UUIDs, which may be cut short;
// a number stands for all MIG instances of its GPU that are in the pool. Fails when --gpus names
// what is not in the pool, or names a device twice, or goes with kInherit.
Expected<DevicePool> BuildPool(const DeviceRequest& request, const DeviceInventory& inventory);

// What to write into CUDA_VISIBLE_DEVICES in the format asked for; nullopt when that cannot name
// the device. MIG instances have no numbers and keep their names.
std::optional<std::string> WriteDevice(const VisibleDevice& entry, const DeviceInventory& inventory,
                                       const DeviceRequest& request);

// "GPU 2 (NVIDIA H100 80GB HBM3, 0000:5d:00.0)".
std::string DescribeDevice(const VisibleDevice& entry, const DeviceInventory& inventory);

}  // namespace ddprun
