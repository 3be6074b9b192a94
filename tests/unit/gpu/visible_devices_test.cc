#include "agent/gpu/visible_devices.h"

#include "rendezvous/base/text.h"
#include "tests/support/catch.h"
#include "tests/unit/gpu/sample_inventory.h"

namespace ddprun {
namespace {

std::string Texts(const DevicePool& pool) {
  std::vector<std::string> texts;
  for (const VisibleDevice& entry : pool.entries) {
    texts.push_back(entry.text);
  }
  return Join(texts, ",");
}

// "2,0" for entries that are the devices 2 and 0; "?" where it is not known.
std::string Numbers(const DevicePool& pool) {
  std::vector<std::string> numbers;
  for (const VisibleDevice& entry : pool.entries) {
    numbers.push_back(entry.number ? std::to_string(*entry.number) : "?");
  }
  return Join(numbers, ",");
}

struct Case {
  const char* list;
  const char* entries;
  const char* warning;  // What the one warning holds; empty: there is none.
};

void Check(const Case& row, const DeviceInventory& inventory) {
  CAPTURE(row.list);
  const DevicePool pool = ParseVisibleDevices(row.list, inventory, DeviceOrder::kPciBusId);
  CHECK(pool.counted);
  CHECK(Texts(pool) == row.entries);
  if (*row.warning == '\0') {
    CHECK(pool.warnings.empty());
  } else {
    REQUIRE(pool.warnings.size() == 1);
    CHECK(pool.warnings[0].find(row.warning) != std::string::npos);
  }
}

TEST_CASE("numbers are read by CUDA's rules") {
  const DeviceInventory inventory = SampleInventory(4);
  for (const Case& row : std::initializer_list<Case>{
           {"0,2", "0,2", ""},
           {"3,1", "3,1", ""},
           {"", "", ""},
           {"  ", "", ""},
           {"-1", "", ""},
           {"-1,0", "", ""},
           {"0,2,-1", "0,2", ""},
           {"0,2,-1,1", "0,2", "'-1' is negative, so the list ends before it, with 2 devices"},
           {"0,4,1", "0",
            "'4' is out of range, there are 4 GPUs, so the list ends before it, with "
            "1 device"},
           {"99999999999999999999", "", "out of range"},
           {"0,0", "", "names '0' twice"},
           {"1,2,01", "", "names '01' twice"},
           {"0,-1,0", "0", "'-1' is negative"},
           {"1gpu2,foo", "1", "'foo' is not a number"},
           {"foo", "", "'foo' is not a number"},
           {"NoDevFiles", "", "'NoDevFiles' is not a number"},
           {" 0 ,\t2 ", "0,2", ""},
           {"+1", "1", ""},
           {"-0", "0", ""},
           {"+", "", "'+' is not a number"},
           {"+-1", "", "'+-1' is not a number"},
           {"0x2", "0", ""},
           {"0,,1", "0", "'' is empty"},
           {"0,", "0", "'' is empty"},
           {",0", "", "'' is empty"},
           {"0,GPU-00000001", "0", "'GPU-00000001' is not of the kind of the first entry"}}) {
    Check(row, inventory);
  }
}

TEST_CASE("UUIDs may be cut short as long as they are unique") {
  const DeviceInventory inventory = SampleInventory(0x11);
  for (const Case& row : std::initializer_list<Case>{
           {"GPU-00000002,GPU-00000000", "GPU-00000002,GPU-00000000", ""},
           {"GPU-00000002-d72c-4106-c12f-20bd9faed9f6", "GPU-00000002-d72c-4106-c12f-20bd9faed9f6",
            ""},
           {"GPU-00000002, GPU-00000003 ", "GPU-00000002,GPU-00000003", ""},
           {"GPU-00000010,GPU-0000000", "GPU-00000010", "fits more than one GPU"},
           {"GPU-00000002,GPU-ffff,GPU-00000001", "GPU-00000002", "is the UUID of no GPU here"},
           {"GPU-00000002,GPU-00000002-d72c", "", "names 'GPU-00000002-d72c' twice"},
           {"GPU-00000002,1", "GPU-00000002", "not of the kind of the first entry"},
           {"gpu-00000002", "", "is not a number, a GPU UUID or a MIG name"}}) {
    Check(row, inventory);
  }
}

TEST_CASE("UUIDs and numbers lead to the device they mean") {
  const DeviceInventory inventory = SampleInventory(4);
  const DeviceOrder pci = DeviceOrder::kPciBusId;
  CHECK(Numbers(ParseVisibleDevices("3,1", inventory, pci)) == "3,1");
  CHECK(Numbers(ParseVisibleDevices("GPU-00000003,GPU-00000001", inventory, pci)) == "3,1");
}

TEST_CASE("MIG instances are named in both ways") {
  DeviceInventory inventory = SampleInventory(2);
  AddInstances(inventory.devices[1], 2);
  const std::string first = inventory.devices[1].mig_instances[0].uuid;
  const std::string second = inventory.devices[1].mig_instances[1].uuid;
  const std::string old = "MIG-" + SampleUuid(1) + "/8/0";
  const std::string both = second + "," + first;
  const std::string twice = second + "," + old;
  const std::string unknown = "MIG-" + SampleUuid(0) + "/8/0";
  for (const Case& row : std::initializer_list<Case>{
           {both.c_str(), both.c_str(), ""},
           {"MIG-00010001", second.c_str(), ""},  // Written in full.
           {"MIG-0001", "", "fits more than one MIG instance"},
           {"MIG-ffff", "", "names no MIG instance here"},
           {old.c_str(), old.c_str(), ""},
           {unknown.c_str(), "", "names no MIG instance here"},
           {"MIG-GPU-1/2", "", "is not of the form MIG-GPU-<uuid>"},
           {"MIG-GPU-/1/0", "", "is not of the form MIG-GPU-<uuid>"},
           {"MIG-GPU-00/x/0", "", "is not of the form MIG-GPU-<uuid>"},
           {twice.c_str(), "", "twice"},
           {"MIG-00010001,GPU-00000000", second.c_str(), "not of the kind of the first entry"}}) {
    Check(row, inventory);
  }
}

TEST_CASE("a MIG entry knows its instance and stands alone in a process") {
  DeviceInventory inventory = SampleInventory(2);
  AddInstances(inventory.devices[1], 2);
  const DevicePool pool = ParseVisibleDevices("MIG-00010001", inventory, DeviceOrder::kPciBusId);
  REQUIRE(pool.entries.size() == 1);
  CHECK(pool.entries[0].number == 1U);
  CHECK(pool.entries[0].mig == 1U);
  CHECK(pool.entries[0].single);
}

TEST_CASE("a whole GPU in MIG mode stands for its first instance") {
  DeviceInventory inventory = SampleInventory(2);
  AddInstances(inventory.devices[1], 2);
  for (const char* list : {"1", "GPU-00000001"}) {
    const DevicePool pool = ParseVisibleDevices(list, inventory, DeviceOrder::kPciBusId);
    REQUIRE(pool.entries.size() == 1);
    CHECK(pool.entries[0].text == list);
    CHECK(pool.entries[0].mig == 0U);
    CHECK(pool.entries[0].single);
  }
}

TEST_CASE("without an inventory well-formed entries are taken at their word") {
  for (const DeviceInventory& inventory : {DeviceInventory{}, NotAnswering()}) {
    for (const Case& row : std::initializer_list<Case>{
             {"4,7", "4,7", ""},
             {"0,0", "", "names '0' twice"},
             {"0,2,-1,1", "0,2", "is negative"},
             {"GPU-8932f937,GPU-0", "GPU-8932f937,GPU-0", ""},
             {"GPU-a,GPU-a", "", "twice"},
             {"MIG-a,MIG-b", "MIG-a,MIG-b", ""},
             {"MIG-GPU-a/1/0,MIG-GPU-a/1", "MIG-GPU-a/1/0", "is not of the form"}}) {
      Check(row, inventory);
    }
  }
  const DevicePool pool = ParseVisibleDevices("MIG-a", {}, DeviceOrder::kPciBusId);
  CHECK(pool.entries[0].single);
  CHECK_FALSE(pool.entries[0].number.has_value());
}

TEST_CASE("the kernel's list without UUIDs bounds numbers and takes UUIDs at their word") {
  DeviceInventory inventory = SampleInventory(2);
  inventory.state = DriverState::kListed;
  inventory.devices[0].uuid.clear();
  Check({"0,2", "0", "out of range"}, inventory);
  Check({"GPU-ab", "GPU-ab", ""}, inventory);
  Check({"MIG-ab", "MIG-ab", ""}, inventory);
}

TEST_CASE("under another order numbers mean known devices only when all are of one model") {
  DeviceInventory inventory = SampleInventory(2);
  CHECK(Numbers(ParseVisibleDevices("1", inventory, DeviceOrder::kOther)) == "1");
  inventory.devices[1].name = "NVIDIA T4";
  CHECK(Numbers(ParseVisibleDevices("1", inventory, DeviceOrder::kOther)) == "?");
  CHECK(Numbers(ParseVisibleDevices("GPU-00000001", inventory, DeviceOrder::kOther)) == "1");
  CHECK(Numbers(ParseVisibleDevices("1", inventory, DeviceOrder::kPciBusId)) == "1");
}

TEST_CASE("without the variable the pool is every device, by number") {
  const DevicePool pool = PoolOfAll(SampleInventory(3), DeviceOrder::kPciBusId);
  CHECK(pool.counted);
  CHECK(Texts(pool) == "0,1,2");
  CHECK(Numbers(pool) == "0,1,2");
}

TEST_CASE("the pool of an unknown machine is not counted") {
  CHECK_FALSE(PoolOfAll(DeviceInventory{}, DeviceOrder::kPciBusId).counted);
  CHECK_FALSE(PoolOfAll(NotAnswering(), DeviceOrder::kPciBusId).counted);
  CHECK(PoolOfAll(NoDriver(), DeviceOrder::kPciBusId).counted);
}

TEST_CASE("where a GPU is left out the others are named by UUID") {
  DeviceInventory inventory = SampleInventory(2);
  inventory.unusable = {{5, 15}};
  CHECK(Texts(PoolOfAll(inventory, DeviceOrder::kPciBusId)) == SampleUuid(0) + "," + SampleUuid(1));
}

TEST_CASE("each MIG instance is in the pool of all, and a GPU without instances is not") {
  DeviceInventory inventory = SampleInventory(3);
  AddInstances(inventory.devices[1], 2);
  AddInstances(inventory.devices[2], 0);
  const DevicePool pool = PoolOfAll(inventory, DeviceOrder::kPciBusId);
  const std::vector<MigInstance>& instances = inventory.devices[1].mig_instances;
  CHECK(Texts(pool) == SampleUuid(0) + "," + instances[0].uuid + "," + instances[1].uuid);
  REQUIRE(pool.warnings.size() == 1);
  CHECK(pool.warnings[0].find("GPU 2 (" + SampleUuid(2) + ") is in MIG mode") == 0);
}

TEST_CASE("a list that hides all devices is told from a mistaken one") {
  for (const char* list : {"", " ", "-1", " -1 ", "-1,0", "-7"}) {
    CAPTURE(list);
    CHECK(HidesAllDevices(list));
  }
  for (const char* list : {"0", "0,-1", "-0", "-", "none", ",", "GPU-"}) {
    CAPTURE(list);
    CHECK_FALSE(HidesAllDevices(list));
  }
}

}  // namespace
}  // namespace ddprun
