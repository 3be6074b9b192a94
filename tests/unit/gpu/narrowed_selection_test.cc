// The device selection with --gpus and with --virtual-local-rank.

#include "agent/gpu/device_selection.h"
#include "tests/support/catch.h"
#include "tests/unit/gpu/sample_inventory.h"
#include "tests/unit/gpu/select.h"

namespace ddprun {
namespace {

TEST_CASE("--gpus picks from all devices, in the order it names them") {
  DeviceRequest request = Of(Kind::kOnePerGpu);
  request.gpus = {"7", " 2 ", "GPU-00000004"};
  const DeviceSelection selection = Select(request, SampleInventory(8));
  CHECK(Cuda(selection) == "7,2,4 7,2,4 7,2,4");
  CHECK(selection.workers[0].text == "GPU 7 (NVIDIA H100, 0000:17:00.0)");
}

TEST_CASE("--gpus narrows CUDA_VISIBLE_DEVICES by what its entries mean") {
  DeviceRequest request = Of(Kind::kOnePerGpu);
  request.cuda_visible_devices = "2,4,7";
  request.gpus = {"4"};
  CHECK(Cuda(Select(request, SampleInventory(8))) == "4");
  CHECK(Cuda(Select(request, DeviceInventory{})) == "4");
  request.gpus = {"GPU-00000007"};
  CHECK(Cuda(Select(request, SampleInventory(8))) == "7");
  request.cuda_visible_devices = "GPU-00000002,GPU-00000004";
  request.gpus = {"4"};
  CHECK(Cuda(Select(request, SampleInventory(8))) == "GPU-00000004");
}

TEST_CASE("--gpus with a number means all MIG instances of that GPU, a MIG name only itself") {
  DeviceInventory inventory = SampleInventory(2);
  AddInstances(inventory.devices[1], 2);
  const std::vector<MigInstance>& instances = inventory.devices[1].mig_instances;
  DeviceRequest request = Of(Kind::kOnePerGpu);
  request.gpus = {"1"};
  CHECK(Cuda(Select(request, inventory)) == instances[0].uuid + " " + instances[1].uuid);
  request.gpus = {"MIG-00010001"};
  CHECK(Cuda(Select(request, inventory)) == instances[1].uuid);
}

TEST_CASE("--gpus that cannot be had are an error") {
  DeviceRequest request = Of(Kind::kOnePerGpu);
  request.gpus = {"8"};
  CHECK(ErrorOf(request, SampleInventory(8)) ==
        "--gpus: '8': there is no such GPU; accepted are the numbers 0 to 7 and UUIDs");
  CHECK(ErrorOf(request, NoDriver()) == "--gpus: '8': there is no driver");
  CHECK(ErrorOf(request, SampleInventory(0)) == "--gpus: '8': no GPU is visible here");
  request.cuda_visible_devices = "2,4";
  request.gpus = {"5"};
  CHECK(Contains(ErrorOf(request, SampleInventory(8)),
                 "not one of CUDA_VISIBLE_DEVICES='2,4', which --gpus can only narrow"));
  for (const char* bad : {"", "x", "-1", "0-3", "1 2", "gpu0"}) {
    CAPTURE(bad);
    request.gpus = {bad};
    CHECK(Contains(ErrorOf(request, SampleInventory(8)), "is not a device; accepted is"));
  }
}

TEST_CASE("--gpus that name a device twice are an error, under whatever spelling") {
  DeviceRequest request = Of(Kind::kOnePerGpu);
  for (const char* second : {"2", "02", "GPU-00000002", "GPU-00000002-d72c"}) {
    request.gpus = {"2", second};
    CHECK(Contains(ErrorOf(request, SampleInventory(8)), "is named twice"));
  }
}

TEST_CASE("--gpus and --gpu-binding=inherit exclude each other") {
  DeviceRequest request = Number(1);
  request.gpus = {"0"};
  request.binding = GpuBinding::kInherit;
  CHECK(Contains(ErrorOf(request, SampleInventory(1)), "use one of them"));
  request.virtual_local_rank = true;
  CHECK(Cuda(Select(request, SampleInventory(1))) == "0");
}

TEST_CASE("--gpus on an unknown machine is taken at its word") {
  DeviceRequest request = Of(Kind::kOnePerGpu);
  request.gpus = {"2", "5"};
  CHECK(Cuda(Select(request, NotAnswering())) == "2,5 2,5");
  request.gpus = {"2", "2"};
  CHECK(Contains(ErrorOf(request, NotAnswering()), "--gpus='2,2' names '2' twice"));
  request.gpus = {"2", "GPU-a"};
  CHECK(Contains(ErrorOf(request, NotAnswering()), "'GPU-a' is not of the kind"));
}

TEST_CASE("--gpus by UUID works where numbers do not say which GPU they mean") {
  DeviceInventory inventory = SampleInventory(2);
  inventory.devices[1].name = "NVIDIA T4";
  DeviceRequest request = Of(Kind::kOnePerGpu);
  request.cuda_device_order = "FASTEST_FIRST";
  request.gpus = {"GPU-00000001"};
  CHECK(Cuda(Select(request, inventory)) == "GPU-00000001");
  request.gpus = {"GPU-0000000f"};
  CHECK(Contains(ErrorOf(request, inventory), "is the UUID of no GPU here"));
  request.gpus = {"1"};
  CHECK(Cuda(Select(request, inventory)) == "1");
}

TEST_CASE("virtual local rank: the list's elements as they stand, on any machine") {
  DeviceRequest request = Number(2);
  request.virtual_local_rank = true;
  request.cuda_visible_devices = "4, 6 ";
  for (const DeviceInventory& inventory :
       {SampleInventory(8), SampleInventory(1), NoDriver(), NotAnswering(), DeviceInventory{}}) {
    const DeviceSelection selection = Select(request, inventory);
    CHECK(Cuda(selection) == "4 6");
    CHECK(Values(selection, "LOCAL_RANK") == "0 0");
    CHECK(Values(selection, "HIP_VISIBLE_DEVICES") == "- -");
  }
}

TEST_CASE("virtual local rank: LOCAL_RANK comes last, over the device variables") {
  DeviceRequest request = Number(1);
  request.virtual_local_rank = true;
  const std::vector<EnvironmentChange> expected = {
      {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}, {"CUDA_VISIBLE_DEVICES", "0"}, {"LOCAL_RANK", "0"}};
  CHECK(Select(request, SampleInventory(1)).workers[0].environment == expected);
}

TEST_CASE("virtual local rank: without a list the local rank itself") {
  DeviceRequest request = Number(3);
  request.virtual_local_rank = true;
  CHECK(Cuda(Select(request, NoDriver())) == "0 1 2");
  CHECK(Cuda(Select(request, SampleInventory(8))) == "0 1 2");
  CHECK(Contains(ErrorOf(request, SampleInventory(2)), "3 workers but only 2 GPUs"));
}

TEST_CASE("virtual local rank: a list that is too short is an error") {
  DeviceRequest request = Number(2);
  request.virtual_local_rank = true;
  request.cuda_visible_devices = "4";
  CHECK(ErrorOf(request, NoDriver()) ==
        "CUDA_VISIBLE_DEVICES='4' names 1 device, too few for 2 workers that see one each; name "
        "more, or lower --nproc-per-node");
  request.cuda_visible_devices = "";
  CHECK(Contains(ErrorOf(request, NoDriver()), "CUDA_VISIBLE_DEVICES='' names 1 device"));
  request.workers.number = 1;
  CHECK(Cuda(Select(request, NoDriver())) == "");
}

TEST_CASE("virtual local rank: HIP's list goes first and both variables are set") {
  DeviceRequest request = Number(2);
  request.virtual_local_rank = true;
  request.cuda_visible_devices = "4,6";
  request.hip_visible_devices = "1,2";
  const DeviceSelection selection = Select(request, NoDriver());
  CHECK(Cuda(selection) == "1 2");
  CHECK(Values(selection, "HIP_VISIBLE_DEVICES") == "1 2");
  request.hip_visible_devices = "1";
  CHECK(Contains(ErrorOf(request, NoDriver()), "HIP_VISIBLE_DEVICES='1' names 1 device"));
  request.hip_visible_devices = "";
  CHECK(Cuda(Select(request, NoDriver())) == "4 6");
}

TEST_CASE("HIP's list passes untouched without virtual local rank") {
  DeviceRequest request = Number(2);
  request.hip_visible_devices = "1,2";
  CHECK(Values(Select(request, SampleInventory(2)), "HIP_VISIBLE_DEVICES") == "- -");
  request.binding = GpuBinding::kExclusive;
  CHECK(Values(Select(request, SampleInventory(2)), "HIP_VISIBLE_DEVICES") == "- -");
}

TEST_CASE("virtual local rank uses --gpus as its list") {
  DeviceRequest request = Number(2);
  request.virtual_local_rank = true;
  request.gpus = {"5", "3"};
  const DeviceSelection selection = Select(request, SampleInventory(8));
  CHECK(Cuda(selection) == "5 3");
  CHECK(Values(selection, "LOCAL_RANK") == "0 0");
}

TEST_CASE("virtual local rank describes the device of each worker") {
  DeviceRequest request = Number(2);
  request.virtual_local_rank = true;
  request.cuda_visible_devices = "1,-1";
  const DeviceSelection selection = Select(request, SampleInventory(2));
  CHECK(selection.workers[0].text == "GPU 1 (NVIDIA H100, 0000:11:00.0)");
  CHECK(selection.workers[0].device == 1U);
  CHECK(selection.workers[1].text == "no GPU");
  CHECK(Select(request, NoDriver()).workers[0].text == "device 1, no GPU here");
}

}  // namespace
}  // namespace ddprun
