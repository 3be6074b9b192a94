// The reader in this process, with the kernel's list as its only source.

#include <sys/wait.h>

#include "agent/gpu/inventory_reader.h"
#include "tests/support/catch.h"
#include "tests/unit/gpu/fake_machine.h"
#include "tests/unit/gpu/kernel_tree.h"

namespace ddprun {
namespace {

InventoryOptions WithoutLibrary(const KernelTree& tree) {
  InventoryOptions options;
  options.library_paths = {"/nowhere/libnvidia-ml.so.1"};
  options.roots = tree.roots();
  return options;
}

TEST_CASE("device files without the library give the driver's list and a warning") {
  const KernelTree tree;
  tree.AddDeviceFile("nvidiactl");
  tree.AddDeviceFile("nvidia0");
  tree.AddDeviceFile("nvidia1");
  tree.AddInformation("0000:c1:00.0", "GPU-c1", 0);
  tree.AddInformation("0000:0a:00.0", "GPU-0a", 1);
  const DeviceInventory inventory = ReadDeviceInventory(WithoutLibrary(tree), nullptr);
  CHECK(inventory.state == DriverState::kListed);
  REQUIRE(inventory.devices.size() == 2);
  CHECK(inventory.devices[0].uuid == "GPU-0a");
  REQUIRE(inventory.warnings.size() == 1);
  CHECK(inventory.warnings[0].find("NVML is not here (load NVML: /nowhere/libnvidia-ml.so.1") == 0);
  CHECK(inventory.warnings[0].find("add 'utility' to NVIDIA_DRIVER_CAPABILITIES") !=
        std::string::npos);
}

TEST_CASE("a control file without devices is a machine without GPUs") {
  const KernelTree tree;
  tree.AddDeviceFile("nvidiactl");
  const DeviceInventory inventory = ReadDeviceInventory(WithoutLibrary(tree), nullptr);
  CHECK(inventory.state == DriverState::kNoLibrary);
  CHECK(inventory.without_gpus());
  CHECK(inventory.warnings.empty());
}

TEST_CASE("a child is forked only where there is something to ask") {
  const KernelTree tree;
  {
    const InventoryReader reader = InventoryReader::Start(WithoutLibrary(tree));
    CHECK(ChildrenOf(::getpid()).empty());
  }
  tree.AddDeviceFile("nvidiactl");
  const InventoryReader reader = InventoryReader::Start(WithoutLibrary(tree));
  CHECK(ChildrenOf(::getpid()).size() == 1);
}

TEST_CASE("a reader that nobody finishes leaves no child behind") {
  const KernelTree tree;
  tree.AddDeviceFile("nvidiactl");
  { const InventoryReader reader = InventoryReader::Start(WithoutLibrary(tree)); }
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("the default search begins with the linker's own and never takes the link-time stub") {
  const std::vector<std::string> paths = NvmlLibraryPaths();
  REQUIRE(paths.size() == 6);
  CHECK(paths[0] == "libnvidia-ml.so.1");
  for (const std::string& path : paths) {
    CHECK(path.ends_with("libnvidia-ml.so.1"));
  }
  CHECK(NvmlSeemsInstalled({"libc.so.6"}));
  CHECK_FALSE(NvmlSeemsInstalled({"libnothing-of-this-name.so.9", "/nowhere/libc.so.6"}));
}

}  // namespace
}  // namespace ddprun
