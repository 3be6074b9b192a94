#include "agent/gpu/kernel_devices.h"

#include "rendezvous/base/text.h"
#include "tests/support/catch.h"
#include "tests/unit/gpu/kernel_tree.h"

namespace ddprun {
namespace {

std::string Addresses(const std::vector<Device>& devices) {
  std::vector<std::string> addresses;
  for (const Device& device : devices) {
    addresses.push_back(device.pci_bus_id);
  }
  return Join(addresses, " ");
}

TEST_CASE("NVIDIA's display and 3D controllers are listed in PCI order") {
  const KernelTree tree;
  tree.AddGpu("0000:c1:00.0");
  tree.AddPci("0000:0a:00.0", "0x10de", "0x030000");
  tree.AddGpu("10001:01:00.0");
  tree.AddPci("0000:0a:00.1", "0x10de", "0x040300");  // The sound part of a display card.
  tree.AddPci("0000:05:00.0", "0x10de", "0x068000");  // An NVSwitch.
  tree.AddPci("0000:02:00.0", "0x1002", "0x030000");  // Another vendor's display card.
  for (const char* name : {"nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm"}) {
    tree.AddDeviceFile(name);
  }
  const std::vector<Device> devices = ListPciDevices(tree.roots());
  CHECK(Addresses(devices) == "0000:0a:00.0 0000:c1:00.0 10001:01:00.0");
  CHECK(devices[2].nvml_index == 2);
  CHECK(DriverDeviceExists(tree.roots()));
}

TEST_CASE("without device files there is no GPU for us, whatever the bus shows") {
  const KernelTree tree;
  tree.AddGpu("0000:c1:00.0");
  tree.AddInformation("0000:c1:00.0", "GPU-ab", 0);
  tree.AddDeviceFile("nvidia-uvm");
  CHECK(ListPciDevices(tree.roots()).empty());
  CHECK(ListDriverDevices(tree.roots()).empty());
  CHECK_FALSE(DriverDeviceExists(tree.roots()));
}

TEST_CASE("fewer device files than GPUs: as many devices, with no address") {
  const KernelTree tree;
  tree.AddGpu("0000:0a:00.0");
  tree.AddGpu("0000:0b:00.0");
  tree.AddDeviceFile("nvidia1");
  CHECK(Addresses(ListPciDevices(tree.roots())) == "");
  CHECK(ListPciDevices(tree.roots()).size() == 1);
}

TEST_CASE("device files count where the bus cannot be read") {
  const KernelTree tree;
  tree.AddDeviceFile("nvidia0");
  tree.AddDeviceFile("nvidia3");
  CHECK(ListPciDevices(tree.roots()).size() == 2);
}

TEST_CASE("the driver's folder tells which device file is whose") {
  const KernelTree tree;
  tree.AddInformation("0000:c1:00.0", "GPU-c1", 0);
  tree.AddInformation("0000:0a:00.0", "GPU-0a", 1);
  tree.AddInformation("0000:0b:00.0", "GPU-0b", 2);
  tree.AddDeviceFile("nvidia0");
  tree.AddDeviceFile("nvidia2");
  const std::vector<Device> devices = ListDriverDevices(tree.roots());
  CHECK(Addresses(devices) == "0000:0b:00.0 0000:c1:00.0");
  CHECK(devices[0].uuid == "GPU-0b");
  CHECK(devices[0].name == "NVIDIA H100");
}

TEST_CASE("a UUID that the driver does not know yet stays empty") {
  const KernelTree tree;
  tree.AddInformation("0000:c1:00.0", "GPU-" + std::string(36, '?'), 0);
  tree.AddDeviceFile("nvidia0");
  const std::vector<Device> devices = ListDriverDevices(tree.roots());
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].uuid.empty());
}

TEST_CASE("without the driver's folder the bus is walked") {
  const KernelTree tree;
  tree.AddGpu("0000:0a:00.0");
  tree.AddDeviceFile("nvidia0");
  CHECK(Addresses(ListDriverDevices(tree.roots())) == "0000:0a:00.0");
}

}  // namespace
}  // namespace ddprun
