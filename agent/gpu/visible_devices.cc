#include "agent/gpu/visible_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>
#include <system_error>
#include <utility>

#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

enum class Kind { kNumber, kGpuUuid, kMigName };

constexpr std::string_view kGpuPrefix = "GPU-";
constexpr std::string_view kMigPrefix = "MIG-";
constexpr std::string_view kOldMigPrefix = "MIG-GPU-";

Kind KindOf(std::string_view entry) {
  if (entry.starts_with(kGpuPrefix)) {
    return Kind::kGpuUuid;
  }
  return entry.starts_with(kMigPrefix) ? Kind::kMigName : Kind::kNumber;
}

// The front of `entry` as strtoul reads it; nullopt without a digit. Saturates.
struct LeadingNumber {
  bool negative = false;
  std::uint64_t value = 0;
};

std::optional<LeadingNumber> ReadLeadingNumber(std::string_view entry) {
  LeadingNumber number;
  if (!entry.empty() && (entry[0] == '-' || entry[0] == '+')) {
    number.negative = entry[0] == '-';
    entry.remove_prefix(1);
  }
  const auto [end, error] =
      std::from_chars(entry.data(), entry.data() + entry.size(), number.value);
  if (error == std::errc::invalid_argument) {
    return std::nullopt;
  }
  if (error == std::errc::result_out_of_range) {
    number.value = UINT64_MAX;
  }
  number.negative = number.negative && number.value > 0;
  return number;
}

// "MIG-GPU-<uuid>/<gi>/<ci>" in its parts.
struct OldMigName {
  std::string gpu_uuid;
  std::uint32_t gpu_instance = 0;
  std::uint32_t compute_instance = 0;
};

bool ReadId(const std::string& text, std::uint32_t& id) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  return error == std::errc{} && end == text.data() + text.size();
}

std::optional<OldMigName> ReadOldMigName(std::string_view entry) {
  const std::vector<std::string> parts = Split(entry.substr(kMigPrefix.size()), '/');
  OldMigName name;
  if (parts.size() != 3 || parts[0].size() <= kGpuPrefix.size() ||
      !ReadId(parts[1], name.gpu_instance) || !ReadId(parts[2], name.compute_instance)) {
    return std::nullopt;
  }
  name.gpu_uuid = parts[0];
  return name;
}

bool OneModel(const DeviceInventory& inventory) {
  return std::all_of(inventory.devices.begin(), inventory.devices.end(), [&](const Device& device) {
    return device.name == inventory.devices.front().name;
  });
}

// Reads one list. An entry is either appended to the pool or ends the list with a reason.
class ListReader {
 public:
  ListReader(const DeviceInventory& inventory, DeviceOrder order, std::string_view name)
      : inventory_(inventory), order_(order), name_(name) {}

  DevicePool Read(std::string_view text) {
    pool_.counted = true;
    if (Trim(text).empty()) {
      return std::move(pool_);
    }
    const std::vector<std::string> pieces = Split(text, ',');
    kind_ = KindOf(Trim(pieces[0]));
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::string_view entry = Trim(pieces[i]);
      const bool last = i + 1 == pieces.size();
      if (std::string problem = ReadEntry(entry); !problem.empty()) {
        TellEnd(text, entry, problem, last);
        break;
      }
      if (IsRepeated()) {
        TellRepeated(text, entry);
        break;
      }
    }
    return std::move(pool_);
  }

 private:
  // Empty when the entry was appended, else why it was not.
  std::string ReadEntry(std::string_view entry) {
    if (entry.empty()) {
      return "is empty";
    }
    if (KindOf(entry) != kind_) {
      return "is not of the kind of the first entry";
    }
    switch (kind_) {
      case Kind::kNumber:
        return ReadNumberEntry(entry);
      case Kind::kGpuUuid:
        return ReadGpuEntry(entry);
      case Kind::kMigName:
        return entry.starts_with(kOldMigPrefix) ? ReadOldMigEntry(entry) : ReadMigEntry(entry);
    }
    return "";
  }

  std::string ReadNumberEntry(std::string_view entry) {
    const std::optional<LeadingNumber> number = ReadLeadingNumber(entry);
    if (!number) {
      return "is not a number, a GPU UUID or a MIG name";
    }
    negative_ = number->negative;
    if (number->negative) {
      return "is negative";
    }
    const bool bounded = inventory_.counted() && !inventory_.devices.empty();
    if (bounded && number->value >= inventory_.devices.size()) {
      return fmt::format("is out of range, there are {} GPUs", inventory_.devices.size());
    }
    VisibleDevice device{std::to_string(number->value), std::nullopt, std::nullopt, false};
    if (bounded && NumbersAreKnown(inventory_, order_)) {
      Resolve(device, static_cast<std::size_t>(number->value));
    }
    pool_.entries.push_back(std::move(device));
    return "";
  }

  std::string ReadGpuEntry(std::string_view entry) {
    VisibleDevice device{std::string(entry), std::nullopt, std::nullopt, false};
    if (UuidsAreKnown()) {
      std::vector<std::size_t> matches;
      for (std::size_t i = 0; i < inventory_.devices.size(); ++i) {
        if (inventory_.devices[i].uuid.starts_with(entry)) {
          matches.push_back(i);
        }
      }
      if (matches.size() != 1) {
        return matches.empty() ? "is the UUID of no GPU here" : "fits more than one GPU";
      }
      Resolve(device, matches[0]);
    }
    pool_.entries.push_back(std::move(device));
    return "";
  }

  // The full name is written for a shortened one: CUDA promises short names for whole GPUs only.
  std::string ReadMigEntry(std::string_view entry) {
    return AppendMig(entry, [&](const Device&, const MigInstance& instance) {
      return instance.uuid.starts_with(entry);
    });
  }

  std::string ReadOldMigEntry(std::string_view entry) {
    const std::optional<OldMigName> name = ReadOldMigName(entry);
    if (!name) {
      return "is not of the form MIG-GPU-<uuid>/<gpu instance>/<compute instance>";
    }
    return AppendMig(entry, [&](const Device& device, const MigInstance& instance) {
      return device.uuid == name->gpu_uuid && instance.gpu_instance == name->gpu_instance &&
             instance.compute_instance == name->compute_instance;
    });
  }

  template <typename Matches>
  std::string AppendMig(std::string_view entry, const Matches& matches) {
    VisibleDevice device{std::string(entry), std::nullopt, std::nullopt, true};
    if (inventory_.state == DriverState::kReady && !inventory_.devices.empty()) {
      const std::size_t found = FindMig(matches, device);
      if (found != 1) {
        return found == 0 ? "names no MIG instance here" : "fits more than one MIG instance";
      }
      const MigInstance& instance = inventory_.devices[*device.number].mig_instances[*device.mig];
      device.text = entry.starts_with(kOldMigPrefix) ? std::string(entry) : instance.uuid;
    }
    pool_.entries.push_back(std::move(device));
    return "";
  }

  // How many instances match; the last one goes into `device`.
  template <typename Matches>
  std::size_t FindMig(const Matches& matches, VisibleDevice& device) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < inventory_.devices.size(); ++i) {
      const Device& gpu = inventory_.devices[i];
      for (std::size_t j = 0; j < gpu.mig_instances.size(); ++j) {
        if (matches(gpu, gpu.mig_instances[j])) {
          ++found;
          device.number = i;
          device.mig = j;
        }
      }
    }
    return found;
  }

  bool UuidsAreKnown() const {
    return inventory_.counted() && !inventory_.devices.empty() &&
           std::none_of(inventory_.devices.begin(), inventory_.devices.end(),
                        [](const Device& device) { return device.uuid.empty(); });
  }

  // A whole GPU in MIG mode stands for its first instance (NVIDIA MIG User Guide, CUDA device
  // enumeration).
  void Resolve(VisibleDevice& device, std::size_t number) const {
    device.number = number;
    const Device& gpu = inventory_.devices[number];
    device.single = gpu.mig_enabled;
    if (!gpu.mig_instances.empty()) {
      device.mig = 0;
    }
  }

  // Whether the entry just appended was there before, under whatever spelling.
  bool IsRepeated() {
    const VisibleDevice& device = pool_.entries.back();
    if (!seen_texts_.insert(device.text).second) {
      return true;
    }
    return device.number && !seen_devices_.insert({*device.number, device.mig}).second;
  }

  void TellEnd(std::string_view text, std::string_view entry, const std::string& problem,
               bool last) {
    // A negative number at the end of the list is how people write "and no more", or "none".
    if (negative_ && (last || pool_.entries.empty())) {
      return;
    }
    pool_.warnings.push_back(fmt::format("{}='{}': '{}' {}, so the list ends before it, with {} {}",
                                         name_, text, entry, problem, pool_.entries.size(),
                                         pool_.entries.size() == 1 ? "device" : "devices"));
  }

  void TellRepeated(std::string_view text, std::string_view entry) {
    pool_.entries.clear();
    pool_.warnings.push_back(
        fmt::format("{}='{}' names '{}' twice, and then CUDA shows no device at all; name each "
                    "device once",
                    name_, text, entry));
  }

  const DeviceInventory& inventory_;
  const DeviceOrder order_;
  const std::string_view name_;
  Kind kind_ = Kind::kNumber;
  bool negative_ = false;
  DevicePool pool_;
  std::set<std::string> seen_texts_;
  std::set<std::pair<std::size_t, std::optional<std::size_t>>> seen_devices_;
};

bool HasMig(const DeviceInventory& inventory) {
  return std::any_of(inventory.devices.begin(), inventory.devices.end(),
                     [](const Device& device) { return device.mig_enabled; });
}

// CUDA's numbers are the inventory's unless a GPU of the machine is left out (whether CUDA counts
// it is not documented) or MIG changes what CUDA counts.
bool NumbersAreCertain(const DeviceInventory& inventory) {
  return inventory.unusable.empty() && !HasMig(inventory);
}

void AppendWhole(DevicePool& pool, const DeviceInventory& inventory, std::size_t number,
                 DeviceOrder order) {
  const Device& device = inventory.devices[number];
  if (!NumbersAreCertain(inventory) && !device.uuid.empty()) {
    pool.entries.push_back({device.uuid, number, std::nullopt, false});
    return;
  }
  VisibleDevice entry{std::to_string(number), std::nullopt, std::nullopt, false};
  if (NumbersAreKnown(inventory, order)) {
    entry.number = number;
  }
  pool.entries.push_back(std::move(entry));
}

void AppendInstances(DevicePool& pool, const DeviceInventory& inventory, std::size_t number) {
  const Device& device = inventory.devices[number];
  for (std::size_t i = 0; i < device.mig_instances.size(); ++i) {
    pool.entries.push_back({device.mig_instances[i].uuid, number, i, true});
  }
  if (device.mig_instances.empty()) {
    pool.warnings.push_back(fmt::format(
        "GPU {} ({}) is in MIG mode and has no instances, so no worker can use it; create some "
        "with nvidia-smi mig, or leave MIG mode",
        number, device.uuid));
  }
}

}  // namespace

DevicePool PoolOfAll(const DeviceInventory& inventory, DeviceOrder order) {
  DevicePool pool;
  pool.counted = inventory.counted();
  for (std::size_t number = 0; number < inventory.devices.size(); ++number) {
    if (inventory.devices[number].mig_enabled) {
      AppendInstances(pool, inventory, number);
    } else {
      AppendWhole(pool, inventory, number, order);
    }
  }
  return pool;
}

DevicePool ParseVisibleDevices(std::string_view text, const DeviceInventory& inventory,
                               DeviceOrder order, std::string_view name) {
  return ListReader(inventory, order, name).Read(text);
}

bool NumbersAreKnown(const DeviceInventory& inventory, DeviceOrder order) {
  return order == DeviceOrder::kPciBusId || OneModel(inventory);
}

bool HidesAllDevices(std::string_view text) {
  const std::string first = Split(text, ',')[0];
  const std::optional<LeadingNumber> number = ReadLeadingNumber(Trim(first));
  return Trim(text).empty() || (number && number->negative);
}

}  // namespace ddprun
