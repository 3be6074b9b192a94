#pragma once

// The few functions of NVML that we call, as a table of pointers filled by dlopen. We never link
// NVML, and include none of its headers: the declarations below are what the C ABI of
// libnvidia-ml.so.1 fixes (nvml.h, API 13; x86-64 and AArch64 alike). A driver that lacks a
// function leaves a null pointer, and whoever calls it lives without.
//
// Every function may block for ever on a sick machine (open-gpu-kernel-modules issue 971), so only
// the child process of inventory_reader.cc loads and calls the real library.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/base/error.h"

namespace ddprun {

using NvmlReturn = int;    // An enumeration in C; every NVML enumeration is a 4-byte int.
using NvmlDevice = void*;  // Opaque; valid until the library is shut down.

// nvmlReturn_t values that the code below tells apart. Their texts: NvmlCodeText().
inline constexpr NvmlReturn kNvmlSuccess = 0;
inline constexpr NvmlReturn kNvmlNotSupported = 3;
inline constexpr NvmlReturn kNvmlNoPermission = 4;
inline constexpr NvmlReturn kNvmlNotFound = 6;
inline constexpr NvmlReturn kNvmlDriverNotLoaded = 9;
inline constexpr NvmlReturn kNvmlFunctionNotFound = 13;
inline constexpr NvmlReturn kNvmlGpuLost = 15;
inline constexpr NvmlReturn kNvmlResetRequired = 16;
inline constexpr NvmlReturn kNvmlBlocked = 17;
inline constexpr NvmlReturn kNvmlNoData = 21;
inline constexpr NvmlReturn kNvmlVersionMismatch = 25;
inline constexpr NvmlReturn kNvmlDeprecated = 26;
inline constexpr NvmlReturn kNvmlNoGpus = 28;

// nvmlPciInfo_t, of nvmlDeviceGetPciInfo_v2 and _v3.
struct NvmlPciInfo {
  char bus_id_legacy[16];
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t pci_device_id;
  std::uint32_t pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(NvmlPciInfo) == 68 && alignof(NvmlPciInfo) == 4);
static_assert(offsetof(NvmlPciInfo, domain) == 16);
static_assert(offsetof(NvmlPciInfo, bus) == 20);
static_assert(offsetof(NvmlPciInfo, device) == 24);
static_assert(offsetof(NvmlPciInfo, pci_device_id) == 28);
static_assert(offsetof(NvmlPciInfo, pci_subsystem_id) == 32);
static_assert(offsetof(NvmlPciInfo, bus_id) == 36);

// nvmlMemory_t, of nvmlDeviceGetMemoryInfo (not _v2, whose structure is longer).
struct NvmlMemory {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(NvmlMemory) == 24);
static_assert(offsetof(NvmlMemory, total) == 0);
static_assert(offsetof(NvmlMemory, free) == 8);
static_assert(offsetof(NvmlMemory, used) == 16);

static_assert(sizeof(NvmlReturn) == 4 && sizeof(NvmlDevice) == 8);

// Sizes of NVML's text buffers.
inline constexpr std::uint32_t kNvmlDriverVersionSize = 80;
inline constexpr std::uint32_t kNvmlUuidSize = 96;
inline constexpr std::uint32_t kNvmlNameSize = 96;

struct NvmlTable {
  NvmlReturn (*init)() = nullptr;                                // nvmlInit_v2
  NvmlReturn (*init_with_flags)(std::uint32_t) = nullptr;        // nvmlInitWithFlags
  NvmlReturn (*driver_version)(char*, std::uint32_t) = nullptr;  // nvmlSystemGetDriverVersion
  NvmlReturn (*cuda_version)(int*) = nullptr;     // nvmlSystemGetCudaDriverVersion_v2
  NvmlReturn (*count)(std::uint32_t*) = nullptr;  // nvmlDeviceGetCount_v2
  NvmlReturn (*handle_by_index)(std::uint32_t, NvmlDevice*) = nullptr;  // …HandleByIndex_v2
  NvmlReturn (*pci_info)(NvmlDevice, NvmlPciInfo*) = nullptr;  // …GetPciInfo_v3, else _v2
  NvmlReturn (*uuid)(NvmlDevice, char*, std::uint32_t) = nullptr;
  NvmlReturn (*name)(NvmlDevice, char*, std::uint32_t) = nullptr;
  NvmlReturn (*memory_info)(NvmlDevice, NvmlMemory*) = nullptr;
  NvmlReturn (*mig_mode)(NvmlDevice, std::uint32_t*, std::uint32_t*) = nullptr;
  NvmlReturn (*max_mig_count)(NvmlDevice, std::uint32_t*) = nullptr;
  NvmlReturn (*mig_handle)(NvmlDevice, std::uint32_t, NvmlDevice*) = nullptr;
  NvmlReturn (*gpu_instance_id)(NvmlDevice, std::uint32_t*) = nullptr;
  NvmlReturn (*compute_instance_id)(NvmlDevice, std::uint32_t*) = nullptr;
};

// Where the library may be, in the order in which it is tried. The bare name comes first: the
// dynamic linker's own search, LD_LIBRARY_PATH included. Never "libnvidia-ml.so", which may be a
// link-time stub that answers every call with an error.
std::vector<std::string> NvmlLibraryPaths();

// Loads the first of `paths` that loads and looks up each function by itself. kNotFound with the
// linker's words when none does. The library stays loaded for the rest of the process.
Expected<NvmlTable> LoadNvml(const std::vector<std::string>& paths);

// Whether one of `paths` seems to be there, without loading anything: a look at the folders the
// dynamic linker would search and at its cache. Costs some ten microseconds; false is certain
// enough to save a fork.
bool NvmlSeemsInstalled(const std::vector<std::string>& paths);

}  // namespace ddprun
