#pragma once

// Decides how many workers this node starts and which devices each of them sees. Pure.
//
// The launcher's own CUDA_VISIBLE_DEVICES is the universe: no worker ever sees a device outside it,
// and other vendors' variables pass untouched (HIP_VISIBLE_DEVICES only changes under
// --virtual-local-rank, as in torch 2.15). The pool is that list, or all devices without it;
// --gpus picks from the pool, in the order in which it names them.
//
//   kShared     each worker sees the first `nproc` devices of the pool: cuda:$LOCAL_RANK is its
//   own.
//               With MIG each sees one device only, because CUDA shows a process no more.
//   kExclusive  each worker sees its own device, and its LOCAL_RANK is 0.
//   kInherit    CUDA_VISIBLE_DEVICES is left alone.
//
// Where no worker can use a GPU (no driver, or all hidden), nothing but CUDA_DEVICE_ORDER is set.
// --virtual-local-rank is torch's to the letter (torch 2.15, local_elastic_agent.py): it takes
// apart the text of the launcher's list, whether or not the machine has GPUs. kExclusive does the
// same where the devices are not known.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/gpu/device_inventory.h"
#include "agent/gpu/visible_devices.h"
#include "rendezvous/base/error.h"

namespace ddprun {

enum class GpuBinding { kShared, kExclusive, kInherit };

// How devices are written into CUDA_VISIBLE_DEVICES.
enum class DeviceIdFormat {
  kAsGiven,  // The user's own spelling; numbers where there is none and they are certain.
  kIndex,    // CUDA's numbers, for scripts that read the variable as integers.
  kUuid,     // Full UUIDs, which mean the same GPU in any order.
};

// What --nproc-per-node asks for.
struct WorkerCountRequest {
  enum class Kind {
    kOnePerGpu,  // Nobody said how many (ddprun's default): the devices, or 1 without any.
    kNumber,     // `number`, at least 1.
    kGpu,        // The devices; an error without any.
    kAuto,       // The devices, or the CPUs without any.
    kCpu,        // The CPUs.
    kXpu,        // Always an error: only NVIDIA's GPUs are counted here.
  };
  Kind kind = Kind::kOnePerGpu;
  std::uint32_t number = 0;

  friend bool operator==(const WorkerCountRequest&, const WorkerCountRequest&) = default;
};

struct DeviceRequest {
  WorkerCountRequest workers;
  std::uint32_t cpu_count = 1;    // CPUs in the launcher's affinity mask, as torch 2.15 counts.
  std::vector<std::string> gpus;  // --gpus, cut at the commas; empty: not given.
  GpuBinding binding = GpuBinding::kShared;
  DeviceIdFormat id_format = DeviceIdFormat::kAsGiven;
  bool virtual_local_rank = false;  // Goes before `binding`.
  // How many launchers the scheduler starts on this node, if it says so (SLURM_NTASKS_PER_NODE).
  std::uint32_t launchers_on_node = 1;
  bool set_device_order = true;  // False: leave CUDA_DEVICE_ORDER alone, as torchrun does.

  // The launcher's own environment; nullopt: not set, which is not the same as empty.
  std::optional<std::string> cuda_visible_devices;
  std::optional<std::string> hip_visible_devices;
  std::optional<std::string> cuda_device_order;
};

struct EnvironmentChange {
  std::string name;
  std::string value;
  friend bool operator==(const EnvironmentChange&, const EnvironmentChange&) = default;
};

struct WorkerDevices {
  // To be set over the inherited environment, LOCAL_RANK last: it replaces the true local rank,
  // which log folders, prefixes and templates keep.
  std::vector<EnvironmentChange> environment;
  // The device that cuda:$LOCAL_RANK is, for --dry-run and the banner: "GPU 2 (NVIDIA H100,
  // 0000:5d:00.0)", "device 2" when only CUDA knows it, "no GPU".
  std::string text;
  // Into DeviceInventory::devices: where to place the worker's CPUs, and whom to blame.
  std::optional<std::size_t> device;
};

struct DeviceSelection {
  std::vector<WorkerDevices> workers;  // By local rank; its size is the number of workers.
  std::string summary;                 // Why there are so many, if nobody said; else empty.
  std::vector<std::string> warnings;   // The inventory's first. Whole sentences.
};

// Whether SelectDevices can use what an inventory says. If not, pass one with kNotRead and save the
// time: nothing in the result would change but texts and warnings.
bool NeedsInventory(const DeviceRequest& request);

// Every error is the user's: exit code 1, printed as it is.
Expected<DeviceSelection> SelectDevices(const DeviceRequest& request,
                                        const DeviceInventory& inventory);

}  // namespace ddprun
