// A libnvidia-ml.so.1 for tests. It plays the machine described by the text file that
// DDPRUN_FAKE_NVML names, one statement per line, fields separated by blanks; "_" in a name is a
// blank, '#' starts a comment:
//
//   driver 550.54.15
//   cuda 12040
//   gpu <uuid> <pci as 0000:5d:00> <name> <memory>   the next GPU in NVML's order
//   mig <slot> <uuid> <gi> <ci> <name> <memory>      an instance of the GPU above; sets MIG mode
//   migmode                                          MIG mode without instances, of the GPU above
//   error <function> <gpu or *> <code>               the call answers with code
//   sleep <function> <gpu or *> <ms>                 the call answers late
//   hang <function> <gpu or *>                       the call never returns
//   crash <function> <gpu or *>                      the call kills the process
//
// Functions that know no GPU match "*" alone. With FAKE_OLD_DRIVER it lacks the MIG functions, the
// CUDA version and nvmlDeviceGetPciInfo_v3.

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Handle {
  std::size_t gpu = 0;
  bool is_mig = false;
  std::string uuid;
  std::string name;
  std::uint64_t memory = 0;
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
};

struct Gpu {
  Handle handle;
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  bool mig_mode = false;
  std::map<unsigned, Handle> mig;  // By slot.
};

struct Fault {
  std::string kind;
  std::string function;
  std::string gpu;
  int value = 0;
};

struct Machine {
  std::string driver = "550.54.15";
  int cuda = 12040;
  std::vector<Gpu> gpus;
  std::vector<Fault> faults;
};

std::string Spaced(std::string text) {
  for (char& c : text) {
    c = c == '_' ? ' ' : c;
  }
  return text;
}

void ReadGpu(std::istringstream& line, Machine& machine) {
  Gpu gpu;
  std::string pci;
  line >> gpu.handle.uuid >> pci >> gpu.handle.name >> gpu.handle.memory;
  gpu.handle.gpu = machine.gpus.size();
  gpu.handle.name = Spaced(gpu.handle.name);
  if (std::sscanf(pci.c_str(), "%x:%x:%x", &gpu.domain, &gpu.bus, &gpu.device) != 3) {
    std::abort();
  }
  machine.gpus.push_back(gpu);
}

void ReadMig(std::istringstream& line, Gpu& gpu) {
  unsigned slot = 0;
  Handle handle;
  line >> slot >> handle.uuid >> handle.gpu_instance >> handle.compute_instance >> handle.name >>
      handle.memory;
  handle.gpu = gpu.handle.gpu;
  handle.is_mig = true;
  handle.name = Spaced(handle.name);
  gpu.mig_mode = true;
  gpu.mig[slot] = handle;
}

Machine ReadMachine() {
  Machine machine;
  const char* path = std::getenv("DDPRUN_FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text.substr(0, text.find('#')));
    std::string word;
    line >> word;
    if (word == "driver") {
      line >> machine.driver;
    } else if (word == "cuda") {
      line >> machine.cuda;
    } else if (word == "gpu") {
      ReadGpu(line, machine);
    } else if (word == "mig") {
      ReadMig(line, machine.gpus.back());
    } else if (word == "migmode") {
      machine.gpus.back().mig_mode = true;
    } else if (!word.empty()) {
      Fault fault{word, "", "", 0};
      line >> fault.function >> fault.gpu >> fault.value;
      machine.faults.push_back(fault);
    }
  }
  return machine;
}

Machine& TheMachine() {
  static Machine machine = ReadMachine();
  return machine;
}

// Plays the faults of a call; its answer, 0 when it is to go well.
int Play(const char* function, const std::string& gpu) {
  for (const Fault& fault : TheMachine().faults) {
    if (fault.function != function || (fault.gpu != "*" && fault.gpu != gpu)) {
      continue;
    }
    if (fault.kind == "error") {
      return fault.value;
    }
    if (fault.kind == "sleep") {
      std::this_thread::sleep_for(std::chrono::milliseconds(fault.value));
    } else if (fault.kind == "hang") {
      while (true) {
        ::pause();
      }
    } else if (fault.kind == "crash") {
      std::abort();
    }
  }
  return 0;
}

int Play(const char* function, const Handle* handle) {
  return Play(function, std::to_string(handle->gpu));
}

int CopyText(const std::string& text, char* buffer, unsigned size) {
  if (text.size() + 1 > size) {
    return 7;
  }
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return 0;
}

struct PciInfo {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};

int PciAnswer(const char* function, const Handle* handle, PciInfo* info) {
  if (const int code = Play(function, handle)) {
    return code;
  }
  const Gpu& gpu = TheMachine().gpus[handle->gpu];
  info->domain = gpu.domain;
  info->bus = gpu.bus;
  info->device = gpu.device;
  std::snprintf(info->bus_id, sizeof info->bus_id, "%08X:%02X:%02X.0", gpu.domain, gpu.bus,
                gpu.device);
  return 0;
}

}  // namespace

FAKE_EXPORT int nvmlInit_v2() {
  return Play("nvmlInit_v2", "");
}

FAKE_EXPORT int nvmlSystemGetDriverVersion(char* buffer, unsigned size) {
  const int code = Play("nvmlSystemGetDriverVersion", "");
  return code != 0 ? code : CopyText(TheMachine().driver, buffer, size);
}

FAKE_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(TheMachine().gpus.size());
  return Play("nvmlDeviceGetCount_v2", "");
}

FAKE_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle** handle) {
  if (index >= TheMachine().gpus.size()) {
    return 2;
  }
  *handle = &TheMachine().gpus[index].handle;
  return Play("nvmlDeviceGetHandleByIndex_v2", *handle);
}

FAKE_EXPORT int nvmlDeviceGetPciInfo_v2(Handle* handle, PciInfo* info) {
  return PciAnswer("nvmlDeviceGetPciInfo_v2", handle, info);
}

FAKE_EXPORT int nvmlDeviceGetUUID(Handle* handle, char* buffer, unsigned size) {
  const int code = Play("nvmlDeviceGetUUID", handle);
  return code != 0 ? code : CopyText(handle->uuid, buffer, size);
}

FAKE_EXPORT int nvmlDeviceGetName(Handle* handle, char* buffer, unsigned size) {
  const int code = Play("nvmlDeviceGetName", handle);
  return code != 0 ? code : CopyText(handle->name, buffer, size);
}

FAKE_EXPORT int nvmlDeviceGetMemoryInfo(Handle* handle, std::uint64_t* total_free_used) {
  if (const int code = Play("nvmlDeviceGetMemoryInfo", handle)) {
    return code;
  }
  total_free_used[0] = handle->memory;
  total_free_used[1] = handle->memory;
  total_free_used[2] = 0;
  return 0;
}

#ifndef FAKE_OLD_DRIVER

FAKE_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = TheMachine().cuda;
  return Play("nvmlSystemGetCudaDriverVersion_v2", "");
}

FAKE_EXPORT int nvmlDeviceGetPciInfo_v3(Handle* handle, PciInfo* info) {
  return PciAnswer("nvmlDeviceGetPciInfo_v3", handle, info);
}

FAKE_EXPORT int nvmlDeviceGetMigMode(Handle* handle, unsigned* current, unsigned* pending) {
  if (const int code = Play("nvmlDeviceGetMigMode", handle)) {
    return code;
  }
  *current = *pending = TheMachine().gpus[handle->gpu].mig_mode ? 1 : 0;
  return 0;
}

FAKE_EXPORT int nvmlDeviceGetMaxMigDeviceCount(Handle* handle, unsigned* count) {
  *count = 7;
  return Play("nvmlDeviceGetMaxMigDeviceCount", handle);
}

FAKE_EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(Handle* handle, unsigned slot, Handle** mig) {
  if (const int code = Play("nvmlDeviceGetMigDeviceHandleByIndex", handle)) {
    return code;
  }
  auto& instances = TheMachine().gpus[handle->gpu].mig;
  const auto found = instances.find(slot);
  if (found == instances.end()) {
    return 6;
  }
  *mig = &found->second;
  return 0;
}

FAKE_EXPORT int nvmlDeviceGetGpuInstanceId(Handle* handle, unsigned* id) {
  *id = handle->gpu_instance;
  return Play("nvmlDeviceGetGpuInstanceId", handle);
}

FAKE_EXPORT int nvmlDeviceGetComputeInstanceId(Handle* handle, unsigned* id) {
  *id = handle->compute_instance;
  return Play("nvmlDeviceGetComputeInstanceId", handle);
}

#endif
