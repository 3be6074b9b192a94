#include "agent/gpu/device_selection.h"

#include "agent/gpu/device_pool.h"
#include "tests/support/catch.h"
#include "tests/unit/gpu/sample_inventory.h"
#include "tests/unit/gpu/select.h"

namespace ddprun {
namespace {

TEST_CASE("without a number there is one worker per GPU, and it is said") {
  const DeviceSelection selection = Select(Of(Kind::kOnePerGpu), SampleInventory(8));
  CHECK(selection.workers.size() == 8);
  CHECK(selection.summary == "8 workers, one per GPU; --nproc-per-node sets another number");
  CHECK(selection.warnings.empty());
}

TEST_CASE("without a number and without GPUs there is one worker") {
  for (const DeviceInventory& inventory :
       {NoDriver(), SampleInventory(0), NotAnswering(), DeviceInventory{}}) {
    const DeviceSelection selection = Select(Of(Kind::kOnePerGpu), inventory);
    CHECK(selection.workers.size() == 1);
    CHECK(selection.summary.empty());
    CHECK(Cuda(selection) == "-");
  }
}

TEST_CASE("gpu and auto count the pool") {
  for (const Kind kind : {Kind::kGpu, Kind::kAuto, Kind::kOnePerGpu}) {
    DeviceRequest request = Of(kind);
    CHECK(Select(request, SampleInventory(4)).workers.size() == 4);
    request.cuda_visible_devices = "3,1";
    CHECK(Select(request, SampleInventory(4)).workers.size() == 2);
    request.cuda_visible_devices = "3,1,9,0";
    CHECK(Select(request, SampleInventory(4)).workers.size() == 2);
    request.cuda_visible_devices = "GPU-00000003";
    CHECK(Select(request, SampleInventory(4)).workers.size() == 1);
    request.cuda_visible_devices = "3,1";
    request.gpus = {"1"};
    CHECK(Select(request, SampleInventory(4)).workers.size() == 1);
  }
}

TEST_CASE("auto takes the CPUs where there is no GPU, cpu always") {
  CHECK(Select(Of(Kind::kAuto), NoDriver()).workers.size() == 6);
  CHECK(Select(Of(Kind::kCpu), NoDriver()).workers.size() == 6);
  DeviceRequest hidden = Of(Kind::kAuto);
  hidden.cuda_visible_devices = "";
  CHECK(Select(hidden, SampleInventory(4)).workers.size() == 6);
}

TEST_CASE("cpu workers are not bound to GPUs, however many there are of both") {
  const DeviceSelection selection = Select(Of(Kind::kCpu), SampleInventory(2));
  CHECK(selection.workers.size() == 6);
  CHECK(Cuda(selection) == "- - - - - -");
  CHECK(selection.warnings.empty());
}

TEST_CASE("gpu without a GPU is an error that says why there is none") {
  CHECK(ErrorOf(Of(Kind::kGpu), NoDriver()) ==
        "--nproc-per-node=gpu: no NVIDIA GPU can be used: there is no driver; give the number of "
        "workers, or 'auto' to take the CPUs then");
  CHECK(Contains(ErrorOf(Of(Kind::kGpu), NotAnswering()), "NVML did not answer within 10 s"));
  CHECK(Contains(ErrorOf(Of(Kind::kGpu), SampleInventory(0)), "the driver shows none"));
  DeviceRequest request = Of(Kind::kGpu);
  request.cuda_visible_devices = "-1";
  CHECK(Contains(ErrorOf(request, SampleInventory(2)), "CUDA_VISIBLE_DEVICES='-1' hides all"));
  request.cuda_visible_devices = "0,0";
  CHECK(Contains(ErrorOf(request, SampleInventory(2)), "names '0' twice"));
}

TEST_CASE("xpu is an error that says what to do") {
  CHECK(ErrorOf(Of(Kind::kXpu), SampleInventory(2)) ==
        "--nproc-per-node=xpu: XPUs cannot be counted here; give the number of workers");
}

TEST_CASE("shared: every worker sees the first devices, so cuda:$LOCAL_RANK is its own") {
  const DeviceSelection selection = Select(Number(3), SampleInventory(8));
  CHECK(Cuda(selection) == "0,1,2 0,1,2 0,1,2");
  CHECK(Values(selection, "LOCAL_RANK") == "- - -");
  CHECK(selection.workers[2].text == "GPU 2 (NVIDIA H100, 0000:12:00.0)");
  CHECK(selection.workers[2].device == 2U);
}

TEST_CASE("shared: the user's list is the universe, in its order and spelling") {
  DeviceRequest request = Number(2);
  request.cuda_visible_devices = " 7, 2 ,4";
  CHECK(Cuda(Select(request, SampleInventory(8))) == "7,2 7,2");
  CHECK(Select(request, SampleInventory(8)).workers[0].text == "GPU 7 (NVIDIA H100, 0000:17:00.0)");
  request.cuda_visible_devices = "GPU-00000007,GPU-00000002";
  CHECK(Cuda(Select(request, SampleInventory(8))) ==
        "GPU-00000007,GPU-00000002 GPU-00000007,GPU-00000002");
}

TEST_CASE("exclusive: each worker sees its own device and has local rank 0") {
  DeviceRequest request = Number(2);
  request.binding = GpuBinding::kExclusive;
  request.cuda_visible_devices = "4,7";
  for (const DeviceInventory& inventory : {SampleInventory(8), NoDriver(), DeviceInventory{}}) {
    const DeviceSelection selection = Select(request, inventory);
    CHECK(Cuda(selection) == "4 7");
    CHECK(Values(selection, "LOCAL_RANK") == "0 0");
  }
  request.cuda_visible_devices.reset();
  CHECK(Cuda(Select(request, SampleInventory(8))) == "0 1");
}

TEST_CASE("exclusive: two MIG names, each worker sees exactly its own") {
  DeviceRequest request = Number(2);
  request.binding = GpuBinding::kExclusive;
  DeviceInventory inventory = SampleInventory(1);
  AddInstances(inventory.devices[0], 3);
  const std::vector<MigInstance>& instances = inventory.devices[0].mig_instances;
  request.cuda_visible_devices = instances[2].uuid + "," + instances[0].uuid;
  const DeviceSelection selection = Select(request, inventory);
  CHECK(Cuda(selection) == instances[2].uuid + " " + instances[0].uuid);
  CHECK(selection.warnings.empty());
  CHECK(selection.workers[0].text == instances[2].uuid + " of GPU 0 (NVIDIA H100, 0000:10:00.0)");
}

TEST_CASE("inherit: the variable is left alone, and too few GPUs are a warning") {
  DeviceRequest request = Number(4);
  request.binding = GpuBinding::kInherit;
  request.cuda_visible_devices = "1,2,3";
  for (const DeviceInventory& inventory : {SampleInventory(8), DeviceInventory{}}) {
    const DeviceSelection selection = Select(request, inventory);
    CHECK(Cuda(selection) == "- - - -");
    CHECK(Contains(selection.warnings, "4 workers share 3 visible GPUs"));
    CHECK(selection.workers[3].text == "no GPU of its own");
  }
  request.workers.number = 3;
  CHECK(Select(request, SampleInventory(8)).warnings.empty());
}

TEST_CASE("inherit with MIG warns that all workers get the same instance") {
  DeviceRequest request = Number(2);
  request.binding = GpuBinding::kInherit;
  DeviceInventory inventory = SampleInventory(1);
  AddInstances(inventory.devices[0], 2);
  CHECK(Contains(Select(request, inventory).warnings, "the same one MIG instance"));
}

TEST_CASE("fewer devices than workers is an error with both numbers") {
  DeviceRequest request = Number(4);
  request.cuda_visible_devices = "1,2,3";
  const std::string message = ErrorOf(request, SampleInventory(8));
  CHECK(message ==
        "4 workers but only 3 GPUs (CUDA_VISIBLE_DEVICES='1,2,3'); lower --nproc-per-node, make "
        "more GPUs visible, let workers share them with --gpu-binding=inherit, or run on CPUs with "
        "CUDA_VISIBLE_DEVICES=''");
  request.binding = GpuBinding::kExclusive;
  CHECK(Contains(ErrorOf(request, SampleInventory(8)), "4 workers but only 3 GPUs"));
  request.virtual_local_rank = true;
  CHECK(Contains(ErrorOf(request, SampleInventory(8)), "CUDA_VISIBLE_DEVICES='1,2,3'"));
  CHECK(Contains(ErrorOf(Number(9), SampleInventory(8)), "9 workers but only 8 GPUs;"));
  request = Number(2);
  request.gpus = {"5"};
  CHECK(Contains(ErrorOf(request, SampleInventory(8)), "2 workers but only 1 GPU (--gpus=5);"));
}

TEST_CASE("the error for too few devices says what is missing") {
  DeviceInventory inventory = SampleInventory(7);
  inventory.unusable = {{3, 15}};
  CHECK(Contains(ErrorOf(Number(8), inventory),
                 "1 GPU more cannot be used, such as number 3 of NVML's list: the GPU is lost"));
  DeviceRequest request = Number(3);
  request.cuda_visible_devices = "0,1,x";
  CHECK(Contains(ErrorOf(request, SampleInventory(4)), "'x' is not a number"));
}

TEST_CASE("where no worker can use a GPU any number of workers runs and nothing is set") {
  DeviceRequest request = Number(4);
  request.cuda_visible_devices = "1,2,3";
  for (const DeviceInventory& inventory : {NoDriver(), SampleInventory(0)}) {
    const DeviceSelection selection = Select(request, inventory);
    CHECK(Cuda(selection) == "- - - -");
    CHECK(selection.workers[0].text == "no GPU");
  }
  for (const char* hidden : {"", "-1"}) {
    request.cuda_visible_devices = hidden;
    for (const GpuBinding binding :
         {GpuBinding::kShared, GpuBinding::kExclusive, GpuBinding::kInherit}) {
      request.binding = binding;
      CHECK(Cuda(Select(request, SampleInventory(8))) == "- - - -");
      CHECK(Cuda(Select(request, DeviceInventory{})) == "- - - -");
    }
  }
}

TEST_CASE("with an unknown machine and no list nothing is set when shared") {
  const DeviceSelection selection = Select(Number(4), NotAnswering());
  CHECK(Cuda(selection) == "- - - -");
  CHECK(selection.workers[1].text == "not known");
  CHECK(Contains(selection.warnings, "hung driver"));
}

TEST_CASE("the device order is set for every worker unless the user has one") {
  for (const DeviceInventory& inventory : {SampleInventory(2), NoDriver(), NotAnswering()}) {
    CHECK(Values(Select(Number(2), inventory), "CUDA_DEVICE_ORDER") == "PCI_BUS_ID PCI_BUS_ID");
  }
  DeviceRequest request = Number(1);
  request.cuda_device_order = "";
  CHECK(Values(Select(request, SampleInventory(1)), "CUDA_DEVICE_ORDER") == "PCI_BUS_ID");
  request.set_device_order = false;
  CHECK(Values(Select(request, SampleInventory(1)), "CUDA_DEVICE_ORDER") == "-");
}

TEST_CASE("a device order of the user is kept and warned of") {
  DeviceRequest request = Number(1);
  request.cuda_device_order = "FASTEST_FIRST";
  const DeviceSelection selection = Select(request, SampleInventory(1));
  CHECK(Values(selection, "CUDA_DEVICE_ORDER") == "-");
  CHECK(Contains(selection.warnings, "CUDA_DEVICE_ORDER='FASTEST_FIRST' is kept"));
  CHECK(Select(request, NoDriver()).warnings.empty());
  request.cuda_device_order = "PCI_BUS_ID";
  CHECK(Select(request, SampleInventory(1)).warnings.empty());
}

TEST_CASE("different models are warned of where numbers are used") {
  DeviceInventory inventory = SampleInventory(2);
  inventory.devices[1].name = "NVIDIA T4";
  CHECK(Contains(Select(Number(1), inventory).warnings,
                 "different models ('NVIDIA H100' and 'NVIDIA T4'), so it matters that they are "
                 "numbered by PCI address"));
  DeviceRequest request = Number(1);
  request.cuda_device_order = "FASTEST_FIRST";
  const DeviceSelection selection = Select(request, inventory);
  CHECK(Contains(selection.warnings, "by CUDA's own order"));
  CHECK(selection.workers[0].text == "device 0");
  CHECK_FALSE(selection.workers[0].device.has_value());
  request.cuda_device_order.reset();
  request.cuda_visible_devices = "GPU-00000001";
  CHECK(Select(request, inventory).warnings.empty());
}

TEST_CASE("MIG under shared: one instance each, with a warning") {
  DeviceInventory inventory = SampleInventory(2);
  AddInstances(inventory.devices[0], 2);
  const DeviceSelection selection = Select(Of(Kind::kGpu), inventory);
  const std::vector<MigInstance>& instances = inventory.devices[0].mig_instances;
  CHECK(Cuda(selection) == instances[0].uuid + " " + instances[1].uuid + " " + SampleUuid(1));
  CHECK(Values(selection, "LOCAL_RANK") == "- - -");
  CHECK(Contains(selection.warnings, "invalid device ordinal"));
  CHECK(Select(Number(1), inventory).warnings.empty());
}

TEST_CASE("MIG counts instances in the one-line summary") {
  DeviceInventory inventory = SampleInventory(1);
  AddInstances(inventory.devices[0], 7);
  CHECK(Select(Of(Kind::kOnePerGpu), inventory).summary ==
        "7 workers, one per GPU or MIG instance; --nproc-per-node sets another number");
}

TEST_CASE("devices are written in the format asked for") {
  DeviceRequest request = Number(2);
  request.id_format = DeviceIdFormat::kUuid;
  CHECK(Value(Select(request, SampleInventory(2)).workers[0], "CUDA_VISIBLE_DEVICES") ==
        SampleUuid(0) + "," + SampleUuid(1));
  request.id_format = DeviceIdFormat::kIndex;
  request.cuda_visible_devices = "GPU-00000003,GPU-00000001";
  CHECK(Cuda(Select(request, SampleInventory(4))) == "3,1 3,1");
  request.binding = GpuBinding::kExclusive;
  CHECK(Cuda(Select(request, SampleInventory(4))) == "3 1");
}

TEST_CASE("a format that cannot name the devices keeps the spelling and says so") {
  DeviceRequest request = Number(2);
  request.cuda_visible_devices = "1,0";
  request.id_format = DeviceIdFormat::kUuid;
  DeviceInventory inventory = SampleInventory(2);
  inventory.state = DriverState::kListed;
  inventory.devices[1].uuid.clear();
  const DeviceSelection selection = Select(request, inventory);
  CHECK(Cuda(selection) == "1,0 1,0");
  CHECK(Contains(selection.warnings, "cannot be named by UUID here"));
  request.id_format = DeviceIdFormat::kIndex;
  request.cuda_visible_devices = "GPU-a,GPU-b";
  const DeviceSelection unknown = Select(request, NotAnswering());
  CHECK(Cuda(unknown) == "GPU-a,GPU-b GPU-a,GPU-b");
  CHECK(Contains(unknown.warnings, "cannot be named by number here"));
}

TEST_CASE("numbers are not written where CUDA may count otherwise") {
  DeviceInventory inventory = SampleInventory(2);
  inventory.devices[1].name = "NVIDIA T4";
  DeviceRequest request = Number(1);
  request.cuda_device_order = "FASTEST_FIRST";
  request.id_format = DeviceIdFormat::kIndex;
  request.cuda_visible_devices = "GPU-00000001";
  CHECK(Cuda(Select(request, inventory)) == "GPU-00000001");
}

TEST_CASE("warnings of the inventory come first") {
  DeviceInventory inventory = SampleInventory(1);
  inventory.warnings = {"from the inventory"};
  DeviceRequest request = Number(1);
  request.cuda_device_order = "FASTEST_FIRST";
  const DeviceSelection selection = Select(request, inventory);
  REQUIRE(selection.warnings.size() == 2);
  CHECK(selection.warnings[0] == "from the inventory");
}

TEST_CASE("a scheduler that starts a launcher per GPU is explained") {
  DeviceRequest request = Number(8);
  request.launchers_on_node = 8;
  request.cuda_visible_devices = "0";
  CHECK(Contains(ErrorOf(request, SampleInventory(1)), "the scheduler starts 8 launchers"));
  request.workers.number = 1;
  CHECK(Contains(Select(request, SampleInventory(1)).warnings, "Slurm: --ntasks-per-node=1"));
  CHECK(Contains(Select(request, NoDriver()).warnings, "the scheduler starts 8 launchers"));
}

TEST_CASE("cpu workers on a machine with MIG are not warned of it") {
  DeviceInventory inventory = SampleInventory(1);
  AddInstances(inventory.devices[0], 2);
  CHECK(Select(Of(Kind::kCpu), inventory).warnings.empty());
}

TEST_CASE("the inventory is asked for only where it changes something") {
  CHECK(NeedsInventory(Of(Kind::kOnePerGpu)));
  CHECK(NeedsInventory(Of(Kind::kGpu)));
  CHECK(NeedsInventory(Of(Kind::kAuto)));
  CHECK(NeedsInventory(Number(2)));
  CHECK_FALSE(NeedsInventory(Of(Kind::kCpu)));
  CHECK_FALSE(NeedsInventory(Of(Kind::kXpu)));
  DeviceRequest request = Number(2);
  request.binding = GpuBinding::kInherit;
  CHECK_FALSE(NeedsInventory(request));
  request.virtual_local_rank = true;
  CHECK(NeedsInventory(request));
  request.cuda_visible_devices = "1,2";
  CHECK_FALSE(NeedsInventory(request));
  request.id_format = DeviceIdFormat::kUuid;
  CHECK(NeedsInventory(request));
  DeviceRequest hidden = Of(Kind::kGpu);
  hidden.cuda_visible_devices = "-1";
  CHECK_FALSE(NeedsInventory(hidden));
  hidden.gpus = {"1"};
  CHECK(NeedsInventory(hidden));
}

TEST_CASE("a device is described by what is known of it") {
  DeviceInventory inventory = SampleInventory(1);
  VisibleDevice entry{"0", 0, std::nullopt, false};
  inventory.devices[0].pci_bus_id.clear();
  CHECK(DescribeDevice(entry, inventory) == "GPU 0 (NVIDIA H100)");
  inventory.devices[0].name.clear();
  CHECK(DescribeDevice(entry, inventory) == "GPU 0");
  entry.number.reset();
  CHECK(DescribeDevice(entry, inventory) == "device 0");
}

}  // namespace
}  // namespace ddprun
