#include "agent/gpu/nvml_inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ddprun {
namespace {

// No machine has more; a broken library that claims so is not followed.
constexpr std::uint32_t kMaxDevices = 1024;
constexpr std::uint32_t kMaxMigSlots = 64;

// The code of a call that was not made because the driver has no such function.
constexpr NvmlReturn kMissing = kNvmlFunctionNotFound;

template <typename Function, typename... Args>
NvmlReturn Call(Function* function, Args... args) {
  return function == nullptr ? kMissing : function(args...);
}

// Whether the driver merely lacks the feature.
bool IsAbsent(NvmlReturn code) {
  constexpr std::array<NvmlReturn, 5> kAbsent = {
      kNvmlNotSupported, kNvmlFunctionNotFound, kNvmlNoData, kNvmlVersionMismatch, kNvmlDeprecated};
  return std::find(kAbsent.begin(), kAbsent.end(), code) != kAbsent.end();
}

// Whether a container or a cgroup keeps the GPU from us, as opposed to the GPU being sick.
bool IsKeptAway(NvmlReturn code) {
  return code == kNvmlNoPermission || code == kNvmlBlocked;
}

// Whether no other call on this GPU can succeed.
bool IsDead(NvmlReturn code) {
  return code == kNvmlGpuLost || code == kNvmlResetRequired;
}

template <std::size_t kSize, typename Function, typename... Args>
NvmlReturn CallForText(std::string& text, Function* function, Args... args) {
  std::array<char, kSize> buffer{};
  const NvmlReturn code = Call(function, args..., buffer.data(), static_cast<std::uint32_t>(kSize));
  if (code == kNvmlSuccess) {
    text.assign(buffer.data(), ::strnlen(buffer.data(), buffer.size()));
  }
  return code;
}

struct FoundDevice {
  std::optional<PciAddress> address;
  Device device;
};

class NvmlReader {
 public:
  NvmlReader(const NvmlTable& nvml, const NvmlProgress& progress)
      : nvml_(nvml), progress_(progress) {}

  DeviceInventory Read() {
    progress_("initialising the driver");
    const NvmlReturn code =
        nvml_.init != nullptr ? nvml_.init() : Call(nvml_.init_with_flags, std::uint32_t{1});
    if (code != kNvmlSuccess && code != kNvmlNoGpus) {
      TellInitFailure(code);
      return std::move(inventory_);
    }
    inventory_.state = DriverState::kReady;
    ReadVersions();
    if (code == kNvmlSuccess) {
      ReadDevices();
    }
    return std::move(inventory_);
  }

 private:
  void TellInitFailure(NvmlReturn code) {
    const std::string text = fmt::format("{} (NVML code {})", NvmlCodeText(code), code);
    inventory_.reason = "NVML cannot start: " + text;
    if (code == kNvmlDriverNotLoaded) {
      inventory_.state = DriverState::kNoDriver;
      return;
    }
    inventory_.state = DriverState::kBroken;
    Warn(fmt::format("the NVIDIA driver cannot be used: {}", text));
  }

  void ReadVersions() {
    CallForText<kNvmlDriverVersionSize>(inventory_.driver_version, nvml_.driver_version);
    Call(nvml_.cuda_version, &inventory_.cuda_version);
  }

  void ReadDevices() {
    std::uint32_t count = 0;
    const NvmlReturn code = Call(nvml_.count, &count);
    if (code != kNvmlSuccess || nvml_.handle_by_index == nullptr) {
      const NvmlReturn shown = code != kNvmlSuccess ? code : kMissing;
      inventory_.state = DriverState::kBroken;
      inventory_.reason =
          fmt::format("NVML cannot list the GPUs: {} (NVML code {})", NvmlCodeText(shown), shown);
      Warn(inventory_.reason);
      return;
    }
    for (std::uint32_t index = 0; index < std::min(count, kMaxDevices); ++index) {
      progress_(fmt::format("GPU {}", index));
      ReadDevice(index);
    }
    KeepDevices();
    TellKeptAway(count);
  }

  void ReadDevice(std::uint32_t index) {
    FoundDevice found;
    found.device.nvml_index = index;
    NvmlDevice handle = nullptr;
    NvmlReturn code = Call(nvml_.handle_by_index, index, &handle);
    if (code == kNvmlSuccess) {
      code = ReadIdentity(handle, found);
    }
    if (code != kNvmlSuccess) {
      inventory_.unusable.push_back({index, code});
      if (!IsKeptAway(code)) {
        Warn(fmt::format("GPU {} of NVML's list cannot be used and is left out: {} (NVML code {})",
                         index, NvmlCodeText(code), code));
      }
      return;
    }
    ReadMig(handle, found.device);
    found_.push_back(std::move(found));
  }

  // What names the GPU. Fails only with what makes the whole GPU unusable.
  NvmlReturn ReadIdentity(NvmlDevice handle, FoundDevice& found) {
    Device& device = found.device;
    NvmlPciInfo pci{};
    NvmlMemory memory{};
    const std::array<std::pair<std::string_view, NvmlReturn>, 4> answers = {{
        {"UUID", CallForText<kNvmlUuidSize>(device.uuid, nvml_.uuid, handle)},
        {"name", CallForText<kNvmlNameSize>(device.name, nvml_.name, handle)},
        {"PCI address", Call(nvml_.pci_info, handle, &pci)},
        {"memory size", Call(nvml_.memory_info, handle, &memory)},
    }};
    for (const auto& [what, code] : answers) {
      if (IsDead(code)) {
        return code;
      }
      TellFinding(device.nvml_index, what, code);
    }
    if (answers[2].second == kNvmlSuccess) {
      found.address = PciAddress{pci.domain, pci.bus, pci.device};
      device.pci_bus_id = PciBusId(*found.address);
    }
    device.memory_bytes = answers[3].second == kNvmlSuccess ? memory.total : 0;
    return kNvmlSuccess;
  }

  void ReadMig(NvmlDevice handle, Device& device) {
    std::uint32_t current = 0;
    std::uint32_t pending = 0;
    NvmlReturn code = Call(nvml_.mig_mode, handle, &current, &pending);
    TellFinding(device.nvml_index, "MIG mode", code);
    if (code != kNvmlSuccess || current != 1) {
      return;
    }
    device.mig_enabled = true;
    std::uint32_t slots = 0;
    code = Call(nvml_.max_mig_count, handle, &slots);
    TellFinding(device.nvml_index, "number of MIG instances", code);
    for (std::uint32_t slot = 0; slot < std::min(slots, kMaxMigSlots); ++slot) {
      ReadMigSlot(handle, slot, device);
    }
  }

  // Instances need not fill the slots from the start: an empty one is skipped, not the end.
  void ReadMigSlot(NvmlDevice gpu, std::uint32_t slot, Device& device) {
    NvmlDevice handle = nullptr;
    NvmlReturn code = Call(nvml_.mig_handle, gpu, slot, &handle);
    if (code == kNvmlNotFound) {
      return;
    }
    MigInstance instance;
    if (code == kNvmlSuccess) {
      code = CallForText<kNvmlUuidSize>(instance.uuid, nvml_.uuid, handle);
    }
    if (code != kNvmlSuccess) {
      TellFinding(device.nvml_index, fmt::format("MIG instance in slot {}", slot), code);
      return;
    }
    CallForText<kNvmlNameSize>(instance.name, nvml_.name, handle);
    Call(nvml_.gpu_instance_id, handle, &instance.gpu_instance);
    Call(nvml_.compute_instance_id, handle, &instance.compute_instance);
    NvmlMemory memory{};
    if (Call(nvml_.memory_info, handle, &memory) == kNvmlSuccess) {
      instance.memory_bytes = memory.total;
    }
    device.mig_instances.push_back(std::move(instance));
  }

  // In PCI order, unless an address is missing: NVML's order is then the best guess.
  void KeepDevices() {
    const auto by_address = [](const FoundDevice& a, const FoundDevice& b) {
      return *a.address < *b.address;
    };
    const bool ordered = std::all_of(found_.begin(), found_.end(), [](const FoundDevice& found) {
      return found.address.has_value();
    });
    if (ordered) {
      std::stable_sort(found_.begin(), found_.end(), by_address);
    }
    for (FoundDevice& found : found_) {
      inventory_.devices.push_back(std::move(found.device));
    }
  }

  void TellKeptAway(std::uint32_t count) {
    const auto kept_away =
        std::count_if(inventory_.unusable.begin(), inventory_.unusable.end(),
                      [](const UnusableDevice& device) { return IsKeptAway(device.code); });
    if (kept_away > 0) {
      Warn(fmt::format(
          "{} of {} GPUs may not be opened from here (container or cgroup limits) and are left out",
          kept_away, count));
    }
  }

  void TellFinding(std::uint32_t index, std::string_view what, NvmlReturn code) {
    if (code == kNvmlSuccess || IsAbsent(code)) {
      return;
    }
    Warn(fmt::format("GPU {} of NVML's list does not tell its {}: {} (NVML code {})", index, what,
                     NvmlCodeText(code), code));
  }

  void Warn(std::string warning) { inventory_.warnings.push_back(std::move(warning)); }

  const NvmlTable& nvml_;
  const NvmlProgress& progress_;
  DeviceInventory inventory_;
  std::vector<FoundDevice> found_;
};

}  // namespace

DeviceInventory ReadNvmlInventory(const NvmlTable& nvml, const NvmlProgress& progress) {
  return NvmlReader(nvml, progress).Read();
}

}  // namespace ddprun
