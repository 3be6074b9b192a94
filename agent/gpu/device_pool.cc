#include "agent/gpu/device_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

constexpr std::string_view kGpuPrefix = "GPU-";
constexpr std::string_view kMigPrefix = "MIG-";

// The pool before --gpus.
DevicePool UnnarrowedPool(const DeviceRequest& request, const DeviceInventory& inventory) {
  const bool hidden =
      request.cuda_visible_devices && HidesAllDevices(*request.cuda_visible_devices);
  if (inventory.without_gpus() || hidden) {
    DevicePool none;
    none.counted = true;
    return none;
  }
  const DeviceOrder order = OrderOfWorkers(request);
  return request.cuda_visible_devices
             ? ParseVisibleDevices(*request.cuda_visible_devices, inventory, order)
             : PoolOfAll(inventory, order);
}

// Why --gpus=<name> picks nothing.
tl::unexpected<Error> FailNotInPool(const std::string& name, const DeviceRequest& request,
                                    const DeviceInventory& inventory, const DevicePool& pool) {
  std::string why;
  if (pool.entries.empty()) {
    why = inventory.reason.empty() ? "no GPU is visible here" : inventory.reason;
  } else if (request.cuda_visible_devices) {
    why = fmt::format("that is not one of CUDA_VISIBLE_DEVICES='{}', which --gpus can only narrow",
                      *request.cuda_visible_devices);
  } else {
    why = fmt::format("there is no such GPU; accepted are the numbers 0 to {} and UUIDs",
                      inventory.devices.size() - 1);
  }
  return Fail(ErrorCode::kInvalidArgument, fmt::format("--gpus: '{}': {}", name, why));
}

// Whether `name`, an entry of --gpus, means this entry of the pool. `meaning` is what the inventory
// makes of it.
bool Matches(const VisibleDevice& entry, const std::string& name, const DevicePool& meaning) {
  if (entry.text == name) {
    return true;
  }
  if (meaning.entries.empty()) {
    return false;
  }
  const VisibleDevice& meant = meaning.entries.front();
  if (entry.text == meant.text) {
    return true;
  }
  if (!meant.number || entry.number != meant.number) {
    return false;
  }
  const bool by_mig_name = meant.text.starts_with(kMigPrefix);
  return !by_mig_name || entry.mig == meant.mig;
}

bool IsWellFormed(std::string_view name) {
  if (name.starts_with(kGpuPrefix) || name.starts_with(kMigPrefix)) {
    return true;
  }
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The entries of --gpus without blanks.
Expected<std::vector<std::string>> ReadNames(const DeviceRequest& request) {
  if (request.binding == GpuBinding::kInherit && !request.virtual_local_rank) {
    return Fail(ErrorCode::kInvalidArgument,
                "--gpus sets CUDA_VISIBLE_DEVICES and --gpu-binding=inherit leaves it alone; use "
                "one of them");
  }
  std::vector<std::string> names;
  for (const std::string& name : request.gpus) {
    names.emplace_back(Trim(name));
    if (!IsWellFormed(names.back())) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("--gpus: '{}' is not a device; accepted is a comma list of numbers "
                              "as nvidia-smi shows them, GPU UUIDs or MIG UUIDs",
                              names.back()));
    }
  }
  return names;
}

tl::unexpected<Error> FailNamedTwice(const std::string& name) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("--gpus: '{}' is named twice; name each device once", name));
}

Expected<DevicePool> Narrow(const DevicePool& pool, const std::vector<std::string>& names,
                            const DeviceRequest& request, const DeviceInventory& inventory) {
  DevicePool narrowed{true, {}, pool.warnings};
  std::set<std::size_t> taken;
  for (const std::string& name : names) {
    const DevicePool meaning = ParseVisibleDevices(name, inventory, OrderOfWorkers(request));
    const std::size_t before = narrowed.entries.size();
    for (std::size_t i = 0; i < pool.entries.size(); ++i) {
      if (!Matches(pool.entries[i], name, meaning)) {
        continue;
      }
      if (!taken.insert(i).second) {
        return FailNamedTwice(name);
      }
      narrowed.entries.push_back(pool.entries[i]);
    }
    if (narrowed.entries.size() == before) {
      return FailNotInPool(name, request, inventory, pool);
    }
  }
  return narrowed;
}

// The pool when nobody can say what stands behind the names, or the numbers of the pool cannot be
// matched with UUIDs: --gpus is read like the variable, but what would end that list is an error.
Expected<DevicePool> TakeAtWord(const std::vector<std::string>& names, const DeviceRequest& request,
                                const DeviceInventory& inventory) {
  DevicePool pool =
      ParseVisibleDevices(Join(names, ","), inventory, OrderOfWorkers(request), "--gpus");
  if (pool.entries.size() != names.size()) {
    return Fail(ErrorCode::kInvalidArgument,
                pool.warnings.empty() ? "--gpus: no devices" : pool.warnings.front());
  }
  return pool;
}

bool NamesUuids(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.starts_with(kGpuPrefix); });
}

}  // namespace

DeviceOrder OrderOfWorkers(const DeviceRequest& request) {
  const std::string order = request.cuda_device_order.value_or("");
  const bool ours = order.empty() && request.set_device_order;
  return ours || order == "PCI_BUS_ID" ? DeviceOrder::kPciBusId : DeviceOrder::kOther;
}

Expected<DevicePool> BuildPool(const DeviceRequest& request, const DeviceInventory& inventory) {
  const DevicePool pool = UnnarrowedPool(request, inventory);
  if (request.gpus.empty()) {
    return pool;
  }
  const Expected<std::vector<std::string>> names = ReadNames(request);
  if (!names) {
    return tl::unexpected(names.error());
  }
  const bool numbers_only = !request.cuda_visible_devices && NamesUuids(*names) &&
                            !NumbersAreKnown(inventory, OrderOfWorkers(request));
  if (!pool.counted || numbers_only) {
    return TakeAtWord(*names, request, inventory);
  }
  return Narrow(pool, *names, request, inventory);
}

std::optional<std::string> WriteDevice(const VisibleDevice& entry, const DeviceInventory& inventory,
                                       const DeviceRequest& request) {
  if (request.id_format == DeviceIdFormat::kAsGiven || entry.text.starts_with(kMigPrefix)) {
    return entry.text;
  }
  const bool given_as_uuid = entry.text.starts_with(kGpuPrefix);
  const std::optional<std::string> given =
      given_as_uuid == (request.id_format == DeviceIdFormat::kUuid)
          ? std::optional<std::string>(entry.text)
          : std::nullopt;
  if (!entry.number) {
    return given;
  }
  if (request.id_format == DeviceIdFormat::kUuid) {
    const std::string& uuid = inventory.devices[*entry.number].uuid;
    return uuid.empty() ? given : std::optional<std::string>(uuid);
  }
  return NumbersAreKnown(inventory, OrderOfWorkers(request))
             ? std::optional<std::string>(std::to_string(*entry.number))
             : given;
}

std::string DescribeDevice(const VisibleDevice& entry, const DeviceInventory& inventory) {
  if (!entry.number) {
    return "device " + entry.text;
  }
  const Device& device = inventory.devices[*entry.number];
  std::vector<std::string> details;
  for (const std::string& detail : {device.name, device.pci_bus_id}) {
    if (!detail.empty()) {
      details.push_back(detail);
    }
  }
  const std::string gpu = fmt::format(
      "GPU {}{}", *entry.number, details.empty() ? "" : fmt::format(" ({})", Join(details, ", ")));
  return entry.mig ? fmt::format("{} of {}", device.mig_instances[*entry.mig].uuid, gpu) : gpu;
}

}  // namespace ddprun
