#pragma once

// DevicePool: the devices that workers of this launcher may use, in the order in which CUDA numbers
// them, read from CUDA_VISIBLE_DEVICES by CUDA's rules. Pure.
//
// The grammar (CUDA Programming Guide, environment variables; where that is silent, as torch 2.15
// reads it in torch/cuda/__init__.py):
//   - a comma list; the first entry says of which kind all are: integers, "GPU-…", or "MIG-…";
//   - the list ends, without an error, at the first entry that is negative, out of range, unknown,
//     not unique, or of another kind: what stands before it is visible;
//   - an integer is what strtoul would take from the front: "+1", "1gpu2" and "1" are equal;
//   - a GPU's UUID may be cut short as long as it is unique;
//   - MIG names are "MIG-<uuid>" (driver 470 on) or "MIG-GPU-<uuid>/<gi>/<ci>" (before);
//   - an entry that is there twice makes the whole list empty;
//   - an empty variable hides all devices.
// Blanks around an entry are dropped. Integers are CUDA's numbers, so which GPU they mean is known
// only under DeviceOrder::kPciBusId, or when all GPUs are of one model (equal ones keep PCI order).

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/gpu/device_inventory.h"

namespace ddprun {

// CUDA_DEVICE_ORDER as the workers will have it.
enum class DeviceOrder { kPciBusId, kOther };

// One entry of the pool.
struct VisibleDevice {
  std::string text;                   // What CUDA understands: "2", "GPU-8932f937", "MIG-…".
  std::optional<std::size_t> number;  // Into DeviceInventory::devices, when it is known.
  std::optional<std::size_t> mig;     // Into that device's mig_instances, when it is one of them.
  bool single = false;  // MIG: CUDA shows a process one such device, and then nothing else.
  friend bool operator==(const VisibleDevice&, const VisibleDevice&) = default;
};

struct DevicePool {
  bool counted = false;  // False: the number of devices is not known, `entries` is empty.
  std::vector<VisibleDevice> entries;
  std::vector<std::string> warnings;  // Where the list ended early, and why.
};

// The pool when CUDA_VISIBLE_DEVICES is not set: every device of the inventory. Entries are
// numbers, but UUIDs where numbers are not certain (a GPU is left out, or one is in MIG mode: each
// instance is an entry then).
DevicePool PoolOfAll(const DeviceInventory& inventory, DeviceOrder order);

// The pool of a list like CUDA_VISIBLE_DEVICES. Always counted: as far as the inventory does not
// know better, every well-formed entry is taken to exist. `name` is what the warnings call it.
DevicePool ParseVisibleDevices(std::string_view text, const DeviceInventory& inventory,
                               DeviceOrder order, std::string_view name = "CUDA_VISIBLE_DEVICES");

// Whether CUDA's number of a device is its number in the inventory.
bool NumbersAreKnown(const DeviceInventory& inventory, DeviceOrder order);

// Whether the list shows no device on purpose: it is empty, or begins with a negative number.
bool HidesAllDevices(std::string_view text);

}  // namespace ddprun
