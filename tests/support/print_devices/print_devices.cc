// Prints the device inventory of this machine and what the device selection makes of it, for tests
// that put a fake NVML in front of it. One fact per line, so that a test can look for whole lines.
//
//   print_devices [--deadline-ms=N] [--library=PATH] [--root=FOLDER] [--repeat=N] [--nproc=N|gpu]
//                 [--binding=shared|exclusive]
//
// --root holds the folders sys, proc and dev. The environment is read as the launcher reads it.
// While it waits for NVML, SIGTERM is blocked in its own mask and open in the one it passes on.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "agent/gpu/device_selection.h"
#include "agent/gpu/inventory_reader.h"

namespace ddprun {
namespace {

struct Arguments {
  InventoryOptions options;
  DeviceRequest request;
  int repeat = 1;
};

std::optional<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

void ReadWorkers(const std::string& value, WorkerCountRequest& workers) {
  workers.kind =
      value == "gpu" ? WorkerCountRequest::Kind::kGpu : WorkerCountRequest::Kind::kNumber;
  workers.number = static_cast<std::uint32_t>(std::atoi(value.c_str()));
}

void ReadArgument(std::string_view argument, Arguments& arguments) {
  const std::size_t equals = argument.find('=');
  const std::string_view name = argument.substr(0, equals);
  const std::string value(argument.substr(equals + 1));
  if (name == "--deadline-ms") {
    arguments.options.deadline = std::chrono::milliseconds(std::atoi(value.c_str()));
  } else if (name == "--library") {
    arguments.options.library_paths = {value};
  } else if (name == "--root") {
    arguments.options.roots = {value + "/sys", value + "/proc", value + "/dev"};
  } else if (name == "--repeat") {
    arguments.repeat = std::atoi(value.c_str());
  } else if (name == "--nproc") {
    ReadWorkers(value, arguments.request.workers);
  } else if (name == "--binding") {
    arguments.request.binding = value == "exclusive" ? GpuBinding::kExclusive : GpuBinding::kShared;
  }
}

void PrintInventory(const DeviceInventory& inventory) {
  fmt::print("state={} driver={} cuda={} reason={}\n", static_cast<int>(inventory.state),
             inventory.driver_version, inventory.cuda_version, inventory.reason);
  for (const Device& device : inventory.devices) {
    fmt::print("device index={} pci={} uuid={} name={} memory={} mig={}\n", device.nvml_index,
               device.pci_bus_id, device.uuid, device.name, device.memory_bytes,
               device.mig_enabled);
    for (const MigInstance& instance : device.mig_instances) {
      fmt::print("instance uuid={} gi={} ci={} name={} memory={}\n", instance.uuid,
                 instance.gpu_instance, instance.compute_instance, instance.name,
                 instance.memory_bytes);
    }
  }
  for (const UnusableDevice& device : inventory.unusable) {
    fmt::print("unusable index={} code={}\n", device.nvml_index, device.code);
  }
}

void PrintSelection(const Expected<DeviceSelection>& selection) {
  if (!selection) {
    fmt::print("error: {}\n", selection.error().message);
    return;
  }
  fmt::print("summary: {}\n", selection->summary);
  for (const std::string& warning : selection->warnings) {
    fmt::print("warning: {}\n", warning);
  }
  for (std::size_t rank = 0; rank < selection->workers.size(); ++rank) {
    fmt::print("worker {}: {}", rank, selection->workers[rank].text);
    for (const EnvironmentChange& change : selection->workers[rank].environment) {
      fmt::print(" {}={}", change.name, change.value);
    }
    fmt::print("\n");
  }
}

int Run(Arguments arguments) {
  sigset_t before;
  sigset_t blocked;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  const TimePoint start = MonotonicNow();
  DeviceInventory inventory;
  for (int i = 0; i < arguments.repeat; ++i) {
    inventory = ReadDeviceInventory(arguments.options, &before);
  }
  const Duration spent = MonotonicNow() - start;
  fmt::print("micros={}\n", spent.count() / 1000 / arguments.repeat);
  arguments.request.cuda_visible_devices = Variable("CUDA_VISIBLE_DEVICES");
  arguments.request.hip_visible_devices = Variable("HIP_VISIBLE_DEVICES");
  arguments.request.cuda_device_order = Variable("CUDA_DEVICE_ORDER");
  PrintInventory(inventory);
  PrintSelection(SelectDevices(arguments.request, inventory));
  std::fflush(stdout);
  return 0;
}

}  // namespace
}  // namespace ddprun

int main(int argc, char** argv) {
  ddprun::Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    ddprun::ReadArgument(argv[i], arguments);
  }
  return ddprun::Run(std::move(arguments));
}
