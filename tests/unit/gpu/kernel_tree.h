#pragma once

// A fixture tree of /sys, /proc and /dev with NVIDIA GPUs in it.

#include <fmt/format.h>

#include <string>

#include "agent/gpu/kernel_devices.h"
#include "tests/unit/gpu/temporary_folder.h"

namespace ddprun {

class KernelTree {
 public:
  KernelRoots roots() const {
    return {folder_.path() + "/sys", folder_.path() + "/proc", folder_.path() + "/dev"};
  }
  const std::string& path() const { return folder_.path(); }

  void AddPci(const std::string& address, const std::string& vendor,
              const std::string& kind) const {
    folder_.Write("sys/bus/pci/devices/" + address + "/vendor", vendor + "\n");
    folder_.Write("sys/bus/pci/devices/" + address + "/class", kind + "\n");
  }
  void AddGpu(const std::string& address) const { AddPci(address, "0x10de", "0x030200"); }
  void AddDeviceFile(const std::string& name) const { folder_.Write("dev/" + name, ""); }
  void AddInformation(const std::string& address, const std::string& uuid, int minor) const {
    folder_.Write("proc/driver/nvidia/gpus/" + address + "/information",
                  fmt::format("Model: \t\t NVIDIA H100\nIRQ:   \t\t 18\nGPU UUID: \t {}\n"
                              "Bus Location: \t {}\nDevice Minor: \t {}\n",
                              uuid, address, minor));
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace ddprun
