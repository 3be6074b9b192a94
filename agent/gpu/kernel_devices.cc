#include "agent/gpu/kernel_devices.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<std::uint32_t> ReadMinor(std::string_view text) {
  std::uint32_t minor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), minor);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return minor;
}

// The numbers of /dev/nvidia0, /dev/nvidia1, …
std::set<std::uint32_t> DeviceFiles(const KernelRoots& roots) {
  constexpr std::string_view kPrefix = "nvidia";
  std::set<std::uint32_t> minors;
  for (const std::string& name : NamesIn(roots.dev)) {
    if (name.starts_with(kPrefix)) {
      if (const auto minor = ReadMinor(std::string_view(name).substr(kPrefix.size()))) {
        minors.insert(*minor);
      }
    }
  }
  return minors;
}

bool IsNvidiaGpu(const std::string& folder) {
  if (Trim(FirstLine(folder + "/vendor")) != "0x10de") {
    return false;
  }
  const std::string kind = FirstLine(folder + "/class");
  return kind.starts_with("0x0302") || kind.starts_with("0x0300");
}

// By address, so that the result is in PCI order.
using DevicesByAddress = std::map<PciAddress, Device>;

std::vector<Device> InOrder(DevicesByAddress by_address) {
  std::vector<Device> devices;
  for (auto& [address, device] : by_address) {
    device.nvml_index = static_cast<std::uint32_t>(devices.size());
    device.pci_bus_id = PciBusId(address);
    devices.push_back(std::move(device));
  }
  return devices;
}

// The lines "Name: value" of /proc/driver/nvidia/gpus/<address>/information.
std::map<std::string, std::string> ReadInformation(const std::string& path) {
  std::map<std::string, std::string> values;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos) {
      values.emplace(Trim(std::string_view(line).substr(0, colon)),
                     Trim(std::string_view(line).substr(colon + 1)));
    }
  }
  return values;
}

Device ToDevice(const std::map<std::string, std::string>& information) {
  const auto value = [&](const char* name) {
    const auto found = information.find(name);
    return found == information.end() ? std::string() : found->second;
  };
  Device device;
  device.name = value("Model");
  device.uuid = value("GPU UUID");
  // A GPU that nobody has initialised yet shows "GPU-????????-…".
  if (device.uuid.find('?') != std::string::npos || !device.uuid.starts_with("GPU-")) {
    device.uuid.clear();
  }
  return device;
}

}  // namespace

std::vector<Device> ListPciDevices(const KernelRoots& roots) {
  const std::size_t reachable = DeviceFiles(roots).size();
  if (reachable == 0) {
    return {};
  }
  const std::string folder = roots.sys + "/bus/pci/devices/";
  DevicesByAddress by_address;
  for (const std::string& name : NamesIn(folder)) {
    const std::optional<PciAddress> address = ParsePciBusId(name);
    if (address && IsNvidiaGpu(folder + name)) {
      by_address.emplace(*address, Device{});
    }
  }
  if (by_address.size() <= reachable && !by_address.empty()) {
    return InOrder(std::move(by_address));
  }
  std::vector<Device> devices(reachable);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].nvml_index = static_cast<std::uint32_t>(i);
  }
  return devices;
}

std::vector<Device> ListDriverDevices(const KernelRoots& roots) {
  const std::set<std::uint32_t> reachable = DeviceFiles(roots);
  const std::string folder = roots.proc + "/driver/nvidia/gpus/";
  DevicesByAddress by_address;
  for (const std::string& name : NamesIn(folder)) {
    const std::optional<PciAddress> address = ParsePciBusId(name);
    const auto information = ReadInformation(folder + name + "/information");
    const auto minor = information.find("Device Minor");
    const bool known = address.has_value() && minor != information.end();
    if (known && reachable.count(ReadMinor(minor->second).value_or(UINT32_MAX)) > 0) {
      by_address.emplace(*address, ToDevice(information));
    }
  }
  return by_address.empty() ? ListPciDevices(roots) : InOrder(std::move(by_address));
}

bool DriverDeviceExists(const KernelRoots& roots) {
  std::error_code error;
  return fs::exists(roots.dev + "/nvidiactl", error);
}

}  // namespace ddprun
