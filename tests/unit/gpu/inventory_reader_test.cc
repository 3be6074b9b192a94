// The whole way: print_devices asks the fake NVML in a child and prints what came back.

#include "agent/gpu/inventory_reader.h"

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/unit/gpu/fake_machine.h"

namespace ddprun {
namespace {

// Eight GPUs in an NVML order that is not the PCI order.
const char* const kEightGpus = R"(
gpu GPU-000000e0 0000:e0:00 NVIDIA_H100 1000
gpu GPU-00000010 0000:10:00 NVIDIA_H100 1000
gpu GPU-000000c0 0000:c0:00 NVIDIA_H100 1000
gpu GPU-00000020 0000:20:00 NVIDIA_H100 1000
gpu GPU-00000090 0000:90:00 NVIDIA_H100 1000
gpu GPU-00000030 0000:30:00 NVIDIA_H100 1000
gpu GPU-00010001 0001:01:00 NVIDIA_H100 1000
gpu GPU-00000040 0000:40:00 NVIDIA_H100 1000
)";

bool Has(const std::vector<std::string>& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

bool HasPart(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

std::size_t CountStart(const std::vector<std::string>& lines, const std::string& start) {
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(),
                    [&](const std::string& line) { return line.starts_with(start); }));
}

std::string State(DriverState state) {
  return "state=" + std::to_string(static_cast<int>(state));
}

// Of "micros=N".
long Micros(const std::vector<std::string>& lines) {
  return std::stol(lines.at(0).substr(std::string("micros=").size()));
}

TEST_CASE("eight GPUs are numbered by PCI address, not by NVML's index") {
  const std::vector<std::string> lines = LinesOf({.description = kEightGpus});
  CHECK(Has(lines, State(DriverState::kReady) + " driver=550.54.15 cuda=12040 reason="));
  CHECK(Has(lines,
            "device index=1 pci=0000:10:00.0 uuid=GPU-00000010 name=NVIDIA H100 "
            "memory=1000 mig=false"));
  CHECK(Has(lines, "summary: 8 workers, one per GPU; --nproc-per-node sets another number"));
  CHECK(Has(lines,
            "worker 0: GPU 0 (NVIDIA H100, 0000:10:00.0) CUDA_DEVICE_ORDER=PCI_BUS_ID "
            "CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7"));
  CHECK(HasPart(lines, "worker 6: GPU 6 (NVIDIA H100, 0000:e0:00.0)"));
  CHECK(HasPart(lines, "worker 7: GPU 7 (NVIDIA H100, 0001:01:00.0)"));
  CHECK(CountStart(lines, "warning") == 0);
}

TEST_CASE("the user's list picks among the GPUs of the machine") {
  const std::vector<std::string> lines =
      LinesOf({.description = kEightGpus,
               .arguments = {"--nproc=gpu"},
               .environment = {"CUDA_VISIBLE_DEVICES=GPU-000000e0,GPU-00000020"}});
  CHECK(HasPart(lines, "worker 0: GPU 6 (NVIDIA H100, 0000:e0:00.0)"));
  CHECK(HasPart(lines, "worker 1: GPU 1 (NVIDIA H100, 0000:20:00.0)"));
  CHECK(CountStart(lines, "worker") == 2);
}

TEST_CASE("MIG instances are workers of their own, also behind an empty slot") {
  const std::vector<std::string> lines = LinesOf({.description = R"(
gpu GPU-1 0000:10:00 NVIDIA_A100 40
mig 0 MIG-a 7 0 NVIDIA_A100_MIG_1g.5gb 5
mig 3 MIG-b 9 1 NVIDIA_A100_MIG_2g.10gb 10
gpu GPU-2 0000:20:00 NVIDIA_A100 40
migmode
)"});
  CHECK(Has(lines, "instance uuid=MIG-a gi=7 ci=0 name=NVIDIA A100 MIG 1g.5gb memory=5"));
  CHECK(Has(lines, "instance uuid=MIG-b gi=9 ci=1 name=NVIDIA A100 MIG 2g.10gb memory=10"));
  CHECK(Has(lines,
            "worker 1: MIG-b of GPU 0 (NVIDIA A100, 0000:10:00.0) "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=MIG-b"));
  CHECK(CountStart(lines, "worker") == 2);
  CHECK(HasPart(lines, "warning: GPU 1 (GPU-2) is in MIG mode and has no instances"));
  CHECK(HasPart(lines, "invalid device ordinal"));
}

TEST_CASE("a lost GPU among eight is left out, and the others work on") {
  const std::vector<std::string> lines = LinesOf(
      {.description = std::string(kEightGpus) + "error nvmlDeviceGetHandleByIndex_v2 3 15\n",
       .arguments = {"--binding=exclusive"}});
  CHECK(CountStart(lines, "device") == 7);
  CHECK(Has(lines, "unusable index=3 code=15"));
  CHECK(Has(lines,
            "warning: GPU 3 of NVML's list cannot be used and is left out: the GPU is "
            "lost: it has fallen off the bus (NVML code 15)"));
  CHECK(HasPart(lines,
                "worker 1: GPU 1 (NVIDIA H100, 0000:30:00.0) CUDA_DEVICE_ORDER=PCI_BUS_ID "
                "CUDA_VISIBLE_DEVICES=GPU-00000030 LOCAL_RANK=0"));
}

TEST_CASE("a GPU that needs a reset shows at a later call, and is left out too") {
  const std::vector<std::string> lines =
      LinesOf({.description = std::string(kEightGpus) + "error nvmlDeviceGetMemoryInfo 1 16\n"});
  CHECK(CountStart(lines, "device") == 7);
  CHECK(HasPart(lines, "the GPU requires a reset (NVML code 16)"));
}

TEST_CASE("GPUs that a container keeps away are said once") {
  const std::vector<std::string> lines = LinesOf(
      {.description = std::string(kEightGpus) + "error nvmlDeviceGetHandleByIndex_v2 1 4\n"
                                                "error nvmlDeviceGetHandleByIndex_v2 2 17\n"});
  CHECK(CountStart(lines, "device") == 6);
  CHECK(CountStart(lines, "warning") == 1);
  CHECK(HasPart(lines, "warning: 2 of 8 GPUs may not be opened from here"));
}

TEST_CASE("an unsupported question is no finding, a damaged answer is one") {
  const std::vector<std::string> lines =
      LinesOf({.description = std::string(kEightGpus) + "error nvmlDeviceGetMemoryInfo * 3\n"
                                                        "error nvmlDeviceGetMigMode * 3\n"
                                                        "error nvmlDeviceGetName 1 999\n"});
  CHECK(CountStart(lines, "device") == 8);
  CHECK(Has(lines, "device index=1 pci=0000:10:00.0 uuid=GPU-00000010 name= memory=0 mig=false"));
  CHECK(Has(lines,
            "warning: GPU 1 of NVML's list does not tell its name: unknown error (NVML code "
            "999)"));
}

TEST_CASE("an empty MIG slot is skipped, another answer there is a finding") {
  const std::vector<std::string> lines = LinesOf({.description = R"(
gpu GPU-1 0000:10:00 NVIDIA_A100 40
mig 0 MIG-a 7 0 MIG 5
error nvmlDeviceGetMigDeviceHandleByIndex 0 999
)"});
  CHECK(HasPart(lines, "does not tell its MIG instance in slot 6: unknown error"));
}

TEST_CASE("without PCI addresses NVML's order stays") {
  const std::vector<std::string> lines =
      LinesOf({.description = std::string(kEightGpus) + "error nvmlDeviceGetPciInfo_v3 5 3\n"});
  CHECK(HasPart(lines, "worker 0: GPU 0 (NVIDIA H100, 0000:e0:00.0)"));
  CHECK(HasPart(lines, "worker 5: GPU 5 (NVIDIA H100) "));
}

TEST_CASE("an old driver that lacks functions still lists its GPUs") {
  const std::vector<std::string> lines =
      LinesOf({.library = "fake_nvml_old", .description = kEightGpus});
  CHECK(Has(lines, State(DriverState::kReady) + " driver=550.54.15 cuda=0 reason="));
  CHECK(HasPart(lines, "worker 0: GPU 0 (NVIDIA H100, 0000:10:00.0)"));
  CHECK(CountStart(lines, "warning") == 0);
}

TEST_CASE("a driver that is not loaded is a machine without GPUs") {
  const std::vector<std::string> lines = LinesOf({.description = "error nvmlInit_v2 * 9\n"});
  CHECK(HasPart(lines, State(DriverState::kNoDriver) + " driver= cuda=0 reason=NVML cannot start: "
                                                       "the driver is not loaded (NVML code 9)"));
  CHECK(CountStart(lines, "warning") == 0);
  CHECK(Has(lines, "worker 0: no GPU CUDA_DEVICE_ORDER=PCI_BUS_ID"));
}

TEST_CASE("a library that does not fit its driver is a finding, and the launch goes on") {
  const std::vector<std::string> lines = LinesOf({.description = "error nvmlInit_v2 * 18\n"});
  CHECK(HasPart(lines, State(DriverState::kBroken)));
  CHECK(Has(lines,
            "warning: the NVIDIA driver cannot be used: the versions of NVML library and "
            "kernel driver differ (NVML code 18)"));
  CHECK(Has(lines, "worker 0: no GPU CUDA_DEVICE_ORDER=PCI_BUS_ID"));
}

TEST_CASE("a driver without GPUs, or one that cannot count them, gives none") {
  const std::vector<std::string> none = LinesOf({.description = "error nvmlInit_v2 * 28\n"});
  CHECK(HasPart(none, State(DriverState::kReady)));
  CHECK(CountStart(none, "device") == 0);
  const std::vector<std::string> broken =
      LinesOf({.description = std::string(kEightGpus) + "error nvmlDeviceGetCount_v2 * 999\n"});
  CHECK(HasPart(broken, "warning: NVML cannot list the GPUs: unknown error (NVML code 999)"));
}

TEST_CASE("a driver that hangs costs the deadline and a warning, and its process is gone") {
  PrintDevices program({.description = std::string(kEightGpus) + "hang nvmlDeviceGetUUID 5\n",
                        .arguments = {"--deadline-ms=300"}});
  std::vector<pid_t> children;
  CHECK(Eventually([&] { return !(children = ChildrenOf(program.pid())).empty(); }));
  const std::vector<std::string> lines = Split(program.Output(), '\n');
  CHECK(HasPart(lines,
                "warning: NVML did not answer within 0.3 s (last seen at: GPU 5): a hung "
                "driver; going on without GPU information"));
  CHECK(HasPart(lines, State(DriverState::kNotAnswering)));
  CHECK(HasPart(lines, "worker 0: not known"));
  CHECK(Micros(lines) >= 300000);
  CHECK(Micros(lines) < 3000000);
  REQUIRE(children.size() == 1);
  CHECK(Eventually([&] { return !IsRunning(children[0]); }));
}

TEST_CASE("a slow driver within the deadline loses nothing") {
  const std::vector<std::string> lines =
      LinesOf({.description = std::string(kEightGpus) + "sleep nvmlInit_v2 * 100\n"});
  CHECK(CountStart(lines, "device") == 8);
  CHECK(Micros(lines) >= 100000);
}

TEST_CASE("a signal ends a launcher that waits for a hung driver, and the child with it") {
  PrintDevices program(
      {.description = "hang nvmlInit_v2 *\n", .arguments = {"--deadline-ms=9000"}});
  std::vector<pid_t> children;
  REQUIRE(Eventually([&] { return !(children = ChildrenOf(program.pid())).empty(); }));
  ::kill(program.pid(), SIGTERM);
  CHECK(program.Output().empty());
  const int status = program.Wait();
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
  CHECK(Eventually([&] { return !IsRunning(children[0]); }));
}

TEST_CASE("the child dies with a launcher that is killed outright") {
  PrintDevices program(
      {.description = "hang nvmlInit_v2 *\n", .arguments = {"--deadline-ms=9000"}});
  std::vector<pid_t> children;
  REQUIRE(Eventually([&] { return !(children = ChildrenOf(program.pid())).empty(); }));
  ::kill(program.pid(), SIGKILL);
  CHECK(WTERMSIG(program.Wait()) == SIGKILL);
  CHECK(Eventually([&] { return !IsRunning(children[0]); }));
}

TEST_CASE("the child holds nothing of the launcher but its pipe") {
  PrintDevices program(
      {.description = "hang nvmlInit_v2 *\n", .arguments = {"--deadline-ms=9000"}});
  std::vector<pid_t> children;
  REQUIRE(Eventually([&] { return !(children = ChildrenOf(program.pid())).empty(); }));
  const std::string folder = "/proc/" + std::to_string(children[0]) + "/fd";
  const auto targets = [&] {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string target = std::filesystem::read_symlink(entry.path()).string();
      found.push_back(target.starts_with("pipe:") ? "pipe" : target);
    }
    std::sort(found.begin(), found.end());
    return Join(found, " ");
  };
  CHECK(Eventually([&] { return targets() == "/dev/null /dev/null /dev/null pipe"; }));
}

TEST_CASE("a library that kills its process is a finding, not our death") {
  const std::vector<std::string> lines =
      LinesOf({.description = std::string(kEightGpus) + "crash nvmlDeviceGetName 2\n"});
  CHECK(HasPart(lines, State(DriverState::kBroken)));
  CHECK(HasPart(lines, "the process that asks NVML ended with signal 6 (SIGABRT) (GPU 2)"));
}

TEST_CASE("a library file that does not load is a machine without NVML") {
  const TemporaryFolder folder;
  folder.Write("libnvidia-ml.so.1", "not a library");
  const std::vector<std::string> lines =
      LinesOf({.library = folder.path(), .arguments = {"--library=libnvidia-ml.so.1"}});
  CHECK(HasPart(lines, State(DriverState::kNoLibrary)));
  CHECK(HasPart(lines, "reason=load NVML: "));
  CHECK(HasPart(lines, "libnvidia-ml.so.1: file too short"));
}

TEST_CASE("without library and device files nothing is forked and nothing said") {
  const std::vector<std::string> lines =
      LinesOf({.library = "", .arguments = {"--library=/nowhere/libnvidia-ml.so.1"}});
  CHECK(HasPart(lines, State(DriverState::kNoLibrary)));
  CHECK(HasPart(lines, "reason=neither libnvidia-ml.so.1 nor /dev/nvidiactl is here"));
  CHECK(CountStart(lines, "warning") == 0);
  CHECK(Has(lines, "worker 0: no GPU CUDA_DEVICE_ORDER=PCI_BUS_ID"));
}

}  // namespace
}  // namespace ddprun
