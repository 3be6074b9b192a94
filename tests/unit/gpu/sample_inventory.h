#pragma once

// Inventories for the tests of agent/gpu.

#include <fmt/format.h>

#include <string>

#include "agent/gpu/device_inventory.h"

namespace ddprun {

// "GPU-0000000a-…" for 10: the first eight hexadecimal digits tell the GPUs apart.
inline std::string SampleUuid(std::size_t number) {
  return fmt::format("GPU-{:08x}-d72c-4106-c12f-20bd9faed9f6", number);
}

inline Device SampleDevice(std::size_t number, const std::string& name = "NVIDIA H100") {
  Device device;
  device.nvml_index = static_cast<std::uint32_t>(number);
  device.uuid = SampleUuid(number);
  device.pci_bus_id = fmt::format("0000:{:02x}:00.0", 0x10 + number);
  device.name = name;
  device.memory_bytes = 85899345920;
  return device;
}

inline DeviceInventory SampleInventory(std::size_t count) {
  DeviceInventory inventory;
  inventory.state = DriverState::kReady;
  inventory.driver_version = "550.54.15";
  inventory.cuda_version = 12040;
  for (std::size_t number = 0; number < count; ++number) {
    inventory.devices.push_back(SampleDevice(number));
  }
  return inventory;
}

inline void AddInstances(Device& device, std::size_t count) {
  device.mig_enabled = true;
  for (std::size_t i = 0; i < count; ++i) {
    MigInstance instance;
    instance.uuid =
        fmt::format("MIG-{:04x}{:04x}-1111-2222-3333-444455556666", device.nvml_index, i);
    instance.name = device.name + " MIG 1g.10gb";
    instance.gpu_instance = static_cast<std::uint32_t>(7 + i);
    instance.memory_bytes = 10737418240;
    device.mig_instances.push_back(instance);
  }
}

inline DeviceInventory NoDriver() {
  DeviceInventory inventory;
  inventory.state = DriverState::kNoLibrary;
  inventory.reason = "there is no driver";
  return inventory;
}

inline DeviceInventory NotAnswering() {
  DeviceInventory inventory;
  inventory.state = DriverState::kNotAnswering;
  inventory.reason = "NVML did not answer within 10 s";
  inventory.warnings = {"NVML did not answer within 10 s: a hung driver"};
  return inventory;
}

}  // namespace ddprun
