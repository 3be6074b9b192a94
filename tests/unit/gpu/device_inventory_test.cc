#include "agent/gpu/device_inventory.h"

#include "agent/gpu/nvml_table.h"
#include "tests/support/catch.h"
#include "tests/unit/gpu/sample_inventory.h"

namespace ddprun {
namespace {

DeviceInventory Everything() {
  DeviceInventory inventory = SampleInventory(3);
  AddInstances(inventory.devices[1], 2);
  inventory.reason = "a reason";
  inventory.unusable = {{7, 15}, {8, 4}};
  inventory.warnings = {"first", "second"};
  return inventory;
}

TEST_CASE("an inventory survives the pipe unchanged") {
  const DeviceInventory inventory = Everything();
  const InventoryMessage message = DecodeInventory(EncodeInventory(inventory));
  REQUIRE(message.inventory.has_value());
  CHECK(*message.inventory == inventory);
  CHECK(message.last_stage.empty());
}

TEST_CASE("every state survives the pipe") {
  for (int state = 0; state <= static_cast<int>(DriverState::kBroken); ++state) {
    DeviceInventory inventory;
    inventory.state = static_cast<DriverState>(state);
    const InventoryMessage message = DecodeInventory(EncodeInventory(inventory));
    REQUIRE(message.inventory.has_value());
    CHECK(message.inventory->state == inventory.state);
  }
}

TEST_CASE("control characters in a model name do not break the records") {
  DeviceInventory inventory = SampleInventory(1);
  inventory.devices[0].name = "a\tb\nc\x7f";
  const InventoryMessage message = DecodeInventory(EncodeInventory(inventory));
  REQUIRE(message.inventory.has_value());
  CHECK(message.inventory->devices[0].name == "a?b?c?");
}

TEST_CASE("a message that is cut off is no inventory, wherever it is cut") {
  const std::string text = EncodeInventory(Everything());
  // The last byte is the newline after "end", without which the message is still whole.
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(DecodeInventory(text.substr(0, length)).inventory.has_value());
  }
}

TEST_CASE("a damaged record makes the message no inventory") {
  for (const char* damaged :
       {"state\tready\t\t\tx\nend\n", "state\tstrange\t\t\t0\nend\n", "state\tready\nend\n",
        "unknown\t1\nend\n", "device\t0\tu\tp\tn\t1\nend\n", "device\tx\tu\tp\tn\t1\t0\nend\n",
        "device\t0\tu\tp\tn\t-1\t0\nend\n", "mig\tu\tn\t1\t2\t3\nend\n", "unusable\t1\nend\n",
        "unusable\t1\t2x\nend\n", "warning\nend\n", "end\nwarning\tlate\n", ""}) {
    CAPTURE(damaged);
    CHECK_FALSE(DecodeInventory(damaged).inventory.has_value());
  }
}

TEST_CASE("the last stage is kept for a message that never ends") {
  const InventoryMessage message = DecodeInventory("at\tloading\nat\tGPU 3\n");
  CHECK(message.last_stage == "GPU 3");
  CHECK_FALSE(message.inventory.has_value());
}

TEST_CASE("stages do not disturb the records among them") {
  const DeviceInventory inventory = Everything();
  const InventoryMessage message = DecodeInventory("at\tGPU 3\n" + EncodeInventory(inventory));
  REQUIRE(message.inventory.has_value());
  CHECK(*message.inventory == inventory);
}

TEST_CASE("PCI addresses are read in NVML's and in the kernel's spelling") {
  CHECK(ParsePciBusId("00000000:5D:00.0") == PciAddress{0, 0x5d, 0});
  CHECK(ParsePciBusId("0000:5d:00.0") == PciAddress{0, 0x5d, 0});
  CHECK(ParsePciBusId("10001:0a:1f.3") == PciAddress{0x10001, 0x0a, 0x1f});
  for (const char* bad :
       {"", "5d:00.0", "0000:5d:00", "0000:5d:00.", "0000:5d:000.0", "000:5d:00.0", "0000:5:00.0",
        "0000:xx:00.0", "0000:5d:0x.0", "000000000:5d:00.0"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParsePciBusId(bad).has_value());
  }
}

TEST_CASE("PCI addresses are written as sysfs names them, and order by number") {
  CHECK(PciBusId({0, 0x5d, 0}) == "0000:5d:00.0");
  CHECK(PciBusId({0x10001, 0x0a, 0x1f}) == "10001:0a:1f.0");
  CHECK(PciAddress{0, 0xff, 0} < PciAddress{1, 0, 0});
  CHECK(PciAddress{0, 0x0a, 5} < PciAddress{0, 0x0b, 0});
}

TEST_CASE("NVML's codes have a text, unknown ones their number") {
  CHECK(NvmlCodeText(kNvmlGpuLost) == "the GPU is lost: it has fallen off the bus");
  CHECK(NvmlCodeText(999) == "unknown error");
  CHECK(NvmlCodeText(42) == "error 42");
}

TEST_CASE("an inventory says what it knows of the number of GPUs") {
  CHECK_FALSE(DeviceInventory{}.counted());
  CHECK_FALSE(DeviceInventory{}.without_gpus());
  CHECK(SampleInventory(2).counted());
  CHECK_FALSE(SampleInventory(2).without_gpus());
  CHECK(SampleInventory(0).without_gpus());
  CHECK(NoDriver().without_gpus());
  CHECK_FALSE(NotAnswering().counted());
  DeviceInventory listed = SampleInventory(1);
  listed.state = DriverState::kNotAnswering;
  CHECK(listed.counted());
}

}  // namespace
}  // namespace ddprun
