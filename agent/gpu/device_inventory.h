#pragma once

// DeviceInventory: the NVIDIA GPUs of this machine as one immutable value, whatever way it was
// found. Pure; agent/gpu/inventory_reader.h fills it, the device selection and the reports read it.
//
// A device's *number* is its place in `devices`: ascending PCI address, which is how CUDA counts
// under CUDA_DEVICE_ORDER=PCI_BUS_ID (CUDA Programming Guide, environment variables). It is the
// number nvidia-smi shows in practice; NVML itself promises no order, so its own index is kept
// apart. GPUs that may not be opened or are lost have no number, because CUDA does not show them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/base/error.h"

namespace ddprun {

// One compute instance of a GPU in MIG mode: what CUDA shows as a device of its own.
struct MigInstance {
  std::string uuid;                    // "MIG-<uuid>", or the older "MIG-GPU-<uuid>/<gi>/<ci>".
  std::string name;                    // "NVIDIA A100-SXM4-40GB MIG 1g.5gb"; may be empty.
  std::uint32_t gpu_instance = 0;      // NVML's GPU instance id.
  std::uint32_t compute_instance = 0;  // NVML's compute instance id inside it.
  std::uint64_t memory_bytes = 0;      // 0: not known.
  friend bool operator==(const MigInstance&, const MigInstance&) = default;
};

struct Device {
  std::uint32_t nvml_index = 0;    // Where NVML (or the kernel's list) has it.
  std::string uuid;                // "GPU-<uuid>"; empty when not known (no NVML).
  std::string pci_bus_id;          // As sysfs spells it: "0000:5d:00.0"; empty when not known.
  std::string name;                // The model; empty when not known.
  std::uint64_t memory_bytes = 0;  // 0: not known.
  bool mig_enabled = false;        // CUDA then shows its instances, never the whole GPU.
  std::vector<MigInstance> mig_instances;
  friend bool operator==(const Device&, const Device&) = default;
};

// A GPU that NVML counts but will not let us use, and why.
struct UnusableDevice {
  std::uint32_t nvml_index = 0;
  int code = 0;  // nvmlReturn_t; see NvmlCodeText().
  friend bool operator==(const UnusableDevice&, const UnusableDevice&) = default;
};

enum class DriverState {
  kNotRead,       // Nobody has looked: nothing is known.
  kReady,         // NVML answered; `devices` is complete.
  kListed,        // No NVML, but the kernel lists the devices: no MIG, perhaps no UUIDs.
  kNotAnswering,  // NVML hangs. `devices` is what sysfs shows, without names; may be empty.
  kNoLibrary,     // No NVML library and no device files: a machine without the driver.
  kNoDriver,      // The library is there, the kernel module is not.
  kBroken,        // The driver is there but NVML cannot work; `reason` says why.
};

struct DeviceInventory {
  DriverState state = DriverState::kNotRead;
  std::string reason;          // Why it is not kReady, one clause; empty if it is.
  std::string driver_version;  // "550.54.15"; empty when not known.
  int cuda_version = 0;        // The newest the driver supports, 12040 = 12.4; 0: not known.
  std::vector<Device> devices;
  std::vector<UnusableDevice> unusable;
  std::vector<std::string> warnings;  // Whole sentences for the user, in order.

  // Whether `devices` says how many GPUs a worker can have, zero included.
  bool counted() const;
  // Whether it is certain that no worker can use a GPU.
  bool without_gpus() const;
  friend bool operator==(const DeviceInventory&, const DeviceInventory&) = default;
};

// The meaning of an nvmlReturn_t: "the GPU is lost". "error 42" for what has no name here.
std::string NvmlCodeText(int code);

// The place of a device on the PCI bus. Orders as CUDA's PCI_BUS_ID order does.
struct PciAddress {
  std::uint32_t domain = 0;
  std::uint32_t bus = 0;
  std::uint32_t device = 0;
  friend auto operator<=>(const PciAddress&, const PciAddress&) = default;
};

// "0000:5d:00.0": lower case, function 0, as the folders of /sys/bus/pci/devices are named.
std::string PciBusId(const PciAddress& address);

// Reads NVML's "00000000:5D:00.0" and sysfs' "0000:5d:00.0"; nullopt for anything else.
std::optional<PciAddress> ParsePciBusId(std::string_view text);

// The inventory as text for a pipe between two processes of ours: one record per line, fields
// separated by tabs, the last line "end". Control characters inside a field become '?'. Lines
// "at\t<what>" may stand anywhere: the stage that the writer has reached.
std::string EncodeInventory(const DeviceInventory& inventory);

// What a reader got from that pipe.
struct InventoryMessage {
  std::optional<DeviceInventory> inventory;  // Nothing when the text is cut off or damaged.
  std::string last_stage;                    // The last "at" line; empty without one.
};
InventoryMessage DecodeInventory(std::string_view text);

}  // namespace ddprun
