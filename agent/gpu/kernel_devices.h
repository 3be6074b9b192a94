#pragma once

// The GPUs as the kernel lists them, for when NVML does not help: a container without the driver's
// `utility` part, or a driver that hangs. Says nothing of MIG.
//
// What counts as reachable is the device file /dev/nvidia<minor>: a container sees the whole host's
// /sys, but only its own device files.

#include <string>
#include <vector>

#include "agent/gpu/device_inventory.h"

namespace ddprun {

// The roots of the kernel's file systems; tests put a fixture tree here.
struct KernelRoots {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string dev = "/dev";
};

// NVIDIA's GPUs on the PCI bus (vendor 0x10de; display or 3D controller) as far as device files
// for them exist, in PCI order, from /sys only: never blocks on the driver. If there are fewer
// device files than GPUs it is not known which are ours, and the addresses stay empty.
std::vector<Device> ListPciDevices(const KernelRoots& roots);

// The same from the driver's own folder /proc/driver/nvidia/gpus, which adds model and UUID and
// tells which device file is whose. Reading it takes the driver's locks and may block as NVML does:
// only in the child. Falls back to ListPciDevices where that folder does not exist.
std::vector<Device> ListDriverDevices(const KernelRoots& roots);

// Whether the driver's control file is there, without which no process can use a GPU.
bool DriverDeviceExists(const KernelRoots& roots);

}  // namespace ddprun
