#include "agent/gpu/device_inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

// Codes and meanings of nvmlReturn_t (nvml.h, API 13).
constexpr std::array<std::pair<int, std::string_view>, 26> kCodes = {{
    {0, "success"},
    {1, "NVML is not initialised"},
    {2, "invalid argument"},
    {3, "not supported"},
    {4, "no permission"},
    {6, "not found"},
    {7, "the buffer is too small"},
    {9, "the driver is not loaded"},
    {10, "timeout"},
    {11, "the kernel has trouble with the GPU's interrupts"},
    {12, "a library of the driver was not found"},
    {13, "function not found"},
    {14, "the infoROM is damaged"},
    {15, "the GPU is lost: it has fallen off the bus"},
    {16, "the GPU requires a reset"},
    {17, "the operating system or a cgroup blocks it"},
    {18, "the versions of NVML library and kernel driver differ"},
    {19, "in use"},
    {20, "out of memory"},
    {21, "no data"},
    {25, "the version of a structure differs"},
    {26, "deprecated"},
    {27, "not ready"},
    {28, "no GPUs were found"},
    {29, "wrong state"},
    {999, "unknown error"},
}};

// The states in the order of the enumeration, as written to the pipe.
constexpr std::array<std::string_view, 7> kStateNames = {
    "not_read", "ready", "listed", "not_answering", "no_library", "no_driver", "broken"};

std::string Clean(std::string_view field) {
  std::string clean(field);
  std::replace_if(
      clean.begin(), clean.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\x7f'; }, '?');
  return clean;
}

template <typename... Fields>
void AppendRecord(std::string& text, std::string_view kind, const Fields&... fields) {
  text += kind;
  ((text += '\t', text += Clean(fmt::format("{}", fields))), ...);
  text += '\n';
}

template <typename Number>
bool ReadNumber(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

using Fields = std::vector<std::string>;

bool ReadState(const Fields& fields, DeviceInventory& inventory) {
  if (fields.size() != 5) {
    return false;
  }
  const auto* name = std::find(kStateNames.begin(), kStateNames.end(), fields[1]);
  if (name == kStateNames.end() || !ReadNumber(fields[4], inventory.cuda_version)) {
    return false;
  }
  inventory.state = static_cast<DriverState>(name - kStateNames.begin());
  inventory.reason = fields[2];
  inventory.driver_version = fields[3];
  return true;
}

bool ReadDevice(const Fields& fields, DeviceInventory& inventory) {
  Device device;
  if (fields.size() != 7 || !ReadNumber(fields[1], device.nvml_index) ||
      !ReadNumber(fields[5], device.memory_bytes)) {
    return false;
  }
  device.uuid = fields[2];
  device.pci_bus_id = fields[3];
  device.name = fields[4];
  device.mig_enabled = fields[6] == "1";
  inventory.devices.push_back(std::move(device));
  return true;
}

// Belongs to the device whose record came before it.
bool ReadMigInstance(const Fields& fields, DeviceInventory& inventory) {
  MigInstance instance;
  if (fields.size() != 6 || inventory.devices.empty() ||
      !ReadNumber(fields[3], instance.gpu_instance) ||
      !ReadNumber(fields[4], instance.compute_instance) ||
      !ReadNumber(fields[5], instance.memory_bytes)) {
    return false;
  }
  instance.uuid = fields[1];
  instance.name = fields[2];
  inventory.devices.back().mig_instances.push_back(std::move(instance));
  return true;
}

bool ReadUnusable(const Fields& fields, DeviceInventory& inventory) {
  UnusableDevice device;
  if (fields.size() != 3 || !ReadNumber(fields[1], device.nvml_index) ||
      !ReadNumber(fields[2], device.code)) {
    return false;
  }
  inventory.unusable.push_back(device);
  return true;
}

bool ReadWarning(const Fields& fields, DeviceInventory& inventory) {
  if (fields.size() != 2) {
    return false;
  }
  inventory.warnings.push_back(fields[1]);
  return true;
}

using RecordReader = bool (*)(const Fields&, DeviceInventory&);

constexpr std::array<std::pair<std::string_view, RecordReader>, 5> kReaders = {{
    {"state", ReadState},
    {"device", ReadDevice},
    {"mig", ReadMigInstance},
    {"unusable", ReadUnusable},
    {"warning", ReadWarning},
}};

bool ReadRecord(const Fields& fields, DeviceInventory& inventory) {
  const auto* reader = std::find_if(kReaders.begin(), kReaders.end(),
                                    [&](const auto& entry) { return entry.first == fields[0]; });
  return reader != kReaders.end() && reader->second(fields, inventory);
}

// "5D" as 0x5d; at least `least` and at most `most` digits.
bool ReadHex(std::string_view text, std::size_t least, std::size_t most, std::uint32_t& number) {
  if (text.size() < least || text.size() > most) {
    return false;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

bool DeviceInventory::counted() const {
  switch (state) {
    case DriverState::kNotRead:
      return false;
    case DriverState::kNotAnswering:
      return !devices.empty();
    case DriverState::kReady:
    case DriverState::kListed:
    case DriverState::kNoLibrary:
    case DriverState::kNoDriver:
    case DriverState::kBroken:
      return true;
  }
  return false;
}

bool DeviceInventory::without_gpus() const {
  return counted() && devices.empty();
}

std::string NvmlCodeText(int code) {
  const auto* known = std::find_if(kCodes.begin(), kCodes.end(),
                                   [&](const auto& entry) { return entry.first == code; });
  return known != kCodes.end() ? std::string(known->second) : fmt::format("error {}", code);
}

std::string PciBusId(const PciAddress& address) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", address.domain, address.bus, address.device);
}

std::optional<PciAddress> ParsePciBusId(std::string_view text) {
  const std::vector<std::string> parts = Split(text, ':');
  PciAddress address;
  if (parts.size() != 3 || parts[2].size() != 4 || parts[2][2] != '.' ||
      !ReadHex(parts[0], 4, 8, address.domain) || !ReadHex(parts[1], 2, 2, address.bus) ||
      !ReadHex(std::string_view(parts[2]).substr(0, 2), 2, 2, address.device)) {
    return std::nullopt;
  }
  return address;
}

std::string EncodeInventory(const DeviceInventory& inventory) {
  std::string text;
  AppendRecord(text, "state", kStateNames[static_cast<std::size_t>(inventory.state)],
               inventory.reason, inventory.driver_version, inventory.cuda_version);
  for (const Device& device : inventory.devices) {
    AppendRecord(text, "device", device.nvml_index, device.uuid, device.pci_bus_id, device.name,
                 device.memory_bytes, device.mig_enabled ? 1 : 0);
    for (const MigInstance& instance : device.mig_instances) {
      AppendRecord(text, "mig", instance.uuid, instance.name, instance.gpu_instance,
                   instance.compute_instance, instance.memory_bytes);
    }
  }
  for (const UnusableDevice& device : inventory.unusable) {
    AppendRecord(text, "unusable", device.nvml_index, device.code);
  }
  for (const std::string& warning : inventory.warnings) {
    AppendRecord(text, "warning", warning);
  }
  text += "end\n";
  return text;
}

InventoryMessage DecodeInventory(std::string_view text) {
  InventoryMessage message;
  DeviceInventory inventory;
  bool intact = true;
  bool complete = false;
  for (const std::string& line : Split(text, '\n')) {
    const Fields fields = Split(line, '\t');
    if (fields[0] == "at" && fields.size() == 2) {
      message.last_stage = fields[1];
    } else if (line == "end") {
      complete = true;
    } else if (!line.empty()) {
      intact = intact && !complete && ReadRecord(fields, inventory);
    }
  }
  if (intact && complete) {
    message.inventory = std::move(inventory);
  }
  return message;
}

}  // namespace ddprun
