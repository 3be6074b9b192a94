#include "agent/gpu/device_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/gpu/device_pool.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

constexpr const char* kCudaVisibleDevices = "CUDA_VISIBLE_DEVICES";
constexpr const char* kHipVisibleDevices = "HIP_VISIBLE_DEVICES";
constexpr const char* kCudaDeviceOrder = "CUDA_DEVICE_ORDER";
constexpr const char* kPciBusOrder = "PCI_BUS_ID";

// "1 GPU", "3 GPUs".
std::string Count(std::size_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

bool AnySingle(const DevicePool& pool) {
  return std::any_of(pool.entries.begin(), pool.entries.end(),
                     [](const VisibleDevice& entry) { return entry.single; });
}

bool AnyNumber(const DevicePool& pool) {
  return std::any_of(pool.entries.begin(), pool.entries.end(), [](const VisibleDevice& entry) {
    return !entry.text.starts_with("GPU-") && !entry.text.starts_with("MIG-");
  });
}

class Selector {
 public:
  Selector(const DeviceRequest& request, const DeviceInventory& inventory)
      : request_(request), inventory_(inventory) {}

  Expected<DeviceSelection> Select() {
    selection_.warnings = inventory_.warnings;
    Expected<DevicePool> pool = BuildPool(request_, inventory_);
    if (!pool) {
      return tl::unexpected(pool.error());
    }
    pool_ = std::move(*pool);
    Append(selection_.warnings, pool_.warnings);
    const Expected<std::size_t> count = CountWorkers();
    if (!count) {
      return tl::unexpected(count.error());
    }
    selection_.workers.resize(*count);
    SetDeviceOrder();
    WarnOfModels();
    if (Expected<void> bound = Bind(); !bound) {
      return tl::unexpected(bound.error());
    }
    return std::move(selection_);
  }

 private:
  static void Append(std::vector<std::string>& to, const std::vector<std::string>& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  void Warn(std::string warning) { selection_.warnings.push_back(std::move(warning)); }

  Expected<std::size_t> CountWorkers() {
    const std::size_t devices = pool_.entries.size();
    switch (request_.workers.kind) {
      case WorkerCountRequest::Kind::kOnePerGpu:
        return CountByDefault();
      case WorkerCountRequest::Kind::kNumber:
        return std::size_t{request_.workers.number};
      case WorkerCountRequest::Kind::kGpu:
        return devices > 0 ? Expected<std::size_t>(devices) : FailWithoutGpu();
      case WorkerCountRequest::Kind::kAuto:
        return devices > 0 ? devices : std::size_t{request_.cpu_count};
      case WorkerCountRequest::Kind::kCpu:
        return std::size_t{request_.cpu_count};
      case WorkerCountRequest::Kind::kXpu:
        return Fail(
            ErrorCode::kFailedPrecondition,
            "--nproc-per-node=xpu: XPUs cannot be counted here; give the number of workers");
    }
    return std::size_t{1};
  }

  std::size_t CountByDefault() {
    const std::size_t devices = pool_.entries.size();
    if (devices == 0) {
      return 1;
    }
    selection_.summary =
        fmt::format("{}, one per {}; --nproc-per-node sets another number",
                    Count(devices, "worker"), AnySingle(pool_) ? "GPU or MIG instance" : "GPU");
    return devices;
  }

  Expected<std::size_t> FailWithoutGpu() const {
    std::string reason = inventory_.reason;
    if (request_.cuda_visible_devices && HidesAllDevices(*request_.cuda_visible_devices)) {
      reason = fmt::format("CUDA_VISIBLE_DEVICES='{}' hides all", *request_.cuda_visible_devices);
    } else if (!pool_.warnings.empty()) {
      reason = pool_.warnings.front();
    } else if (reason.empty()) {
      reason = "the driver shows none";
    }
    return Fail(ErrorCode::kFailedPrecondition,
                fmt::format("--nproc-per-node=gpu: no NVIDIA GPU can be used: {}; give the number "
                            "of workers, or 'auto' to take the CPUs then",
                            reason));
  }

  // Whether it is settled that workers run on CPUs.
  bool WithoutGpus() const { return pool_.counted && pool_.entries.empty(); }

  void SetDeviceOrder() {
    const std::string order = request_.cuda_device_order.value_or("");
    if (order.empty() && request_.set_device_order) {
      for (WorkerDevices& worker : selection_.workers) {
        worker.environment.push_back({kCudaDeviceOrder, kPciBusOrder});
      }
    }
    if (!order.empty() && order != kPciBusOrder && !WithoutGpus()) {
      Warn(
          fmt::format("CUDA_DEVICE_ORDER='{}' is kept, so CUDA may number the GPUs otherwise than "
                      "nvidia-smi does; PCI_BUS_ID makes them agree",
                      order));
    }
  }

  // Different models are where CUDA's two orders differ (FASTEST_FIRST is CUDA's own default), and
  // numbers are what an order changes.
  void WarnOfModels() {
    const std::vector<Device>& devices = inventory_.devices;
    const auto other = std::find_if(devices.begin(), devices.end(), [&](const Device& device) {
      return device.name != devices.front().name;
    });
    if (other == devices.end() || !AnyNumber(pool_)) {
      return;
    }
    Warn(
        fmt::format("the GPUs of this machine are of different models ('{}' and '{}'), so it "
                    "matters that they are numbered {}",
                    devices.front().name, other->name,
                    OrderOfWorkers(request_) == DeviceOrder::kPciBusId
                        ? "by PCI address (CUDA_DEVICE_ORDER=PCI_BUS_ID), not fastest first"
                        : "by CUDA's own order, which may put the fastest first"));
  }

  Expected<void> Bind() {
    if (TakesListApart()) {
      return BindByLetter();
    }
    if (WithoutGpus()) {
      DescribeByRank();
      return {};
    }
    if (LeavesAlone()) {
      return Inherit();
    }
    if (!pool_.counted) {
      DescribeByRank();
      return {};
    }
    if (pool_.entries.size() < selection_.workers.size()) {
      return FailTooFew();
    }
    BindToPool();
    return {};
  }

  // Workers that are counted by CPUs are not meant for one GPU each.
  bool LeavesAlone() const {
    const bool cpu_workers = request_.workers.kind == WorkerCountRequest::Kind::kCpu &&
                             request_.binding == GpuBinding::kShared && request_.gpus.empty();
    return (request_.binding == GpuBinding::kInherit || cpu_workers) &&
           !request_.virtual_local_rank;
  }

  // Whether torch's own rule for virtual local ranks applies, which looks at nothing but the text.
  bool TakesListApart() const {
    const bool plain = request_.gpus.empty() && request_.id_format == DeviceIdFormat::kAsGiven;
    if (request_.virtual_local_rank) {
      return plain || WithoutGpus() || !pool_.counted;
    }
    const bool unknown = inventory_.without_gpus() || !inventory_.counted();
    const bool hidden =
        request_.cuda_visible_devices && HidesAllDevices(*request_.cuda_visible_devices);
    return request_.binding == GpuBinding::kExclusive && request_.gpus.empty() && unknown &&
           !hidden;
  }

  Expected<void> BindByLetter() {
    const bool hip = request_.hip_visible_devices && !request_.hip_visible_devices->empty();
    const std::optional<std::string>& list =
        hip ? request_.hip_visible_devices : request_.cuda_visible_devices;
    const std::size_t count = selection_.workers.size();
    if (!list && !pool_.entries.empty() && pool_.entries.size() < count) {
      return FailTooFew();
    }
    const std::vector<std::string> elements = list ? Split(*list, ',') : std::vector<std::string>();
    if (list && elements.size() < count) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}='{}' names {}, too few for {} that see one each; name more, or "
                              "lower --nproc-per-node",
                              hip ? kHipVisibleDevices : kCudaVisibleDevices, *list,
                              Count(elements.size(), "device"), Count(count, "worker")));
    }
    for (std::size_t rank = 0; rank < count; ++rank) {
      const std::string device = list ? std::string(Trim(elements[rank])) : std::to_string(rank);
      BindOne(selection_.workers[rank], device, hip);
    }
    return {};
  }

  void BindOne(WorkerDevices& worker, const std::string& device, bool hip) {
    worker.environment.push_back({kCudaVisibleDevices, device});
    if (hip) {
      worker.environment.push_back({kHipVisibleDevices, device});
    }
    worker.environment.push_back({"LOCAL_RANK", "0"});
    const DevicePool own = ParseVisibleDevices(device, inventory_, OrderOfWorkers(request_));
    if (inventory_.without_gpus() && !hip) {
      worker.text = device.empty() ? "no GPU" : fmt::format("device {}, no GPU here", device);
    } else if (own.entries.empty()) {
      worker.text = "no GPU";
    } else {
      worker.text = DescribeDevice(own.entries[0], inventory_);
      worker.device = own.entries[0].number;
    }
  }

  // The variable stays as it is, so each worker may use what it likes; say what cannot be right.
  Expected<void> Inherit() {
    const std::size_t visible = pool_.entries.size();
    const std::size_t count = selection_.workers.size();
    if (request_.binding == GpuBinding::kInherit && pool_.counted && visible < count) {
      Warn(
          fmt::format("{} share {}: --gpu-binding=inherit leaves it to the script which worker "
                      "uses which",
                      Count(count, "worker"), Count(visible, "visible GPU")));
    }
    if (AnySingle(pool_) && count > 1) {
      Warn(
          "--gpu-binding=inherit with MIG: CUDA shows every worker the same one MIG instance; "
          "--gpu-binding=exclusive gives each its own");
    }
    DescribeByRank();
    return {};
  }

  Expected<void> FailTooFew() const {
    std::string where;
    if (!request_.gpus.empty()) {
      where = fmt::format(" (--gpus={})", Join(request_.gpus, ","));
    } else if (request_.cuda_visible_devices) {
      where = fmt::format(" (CUDA_VISIBLE_DEVICES='{}')", *request_.cuda_visible_devices);
    }
    std::string why;
    for (const std::string& warning : pool_.warnings) {
      why += "; " + warning;
    }
    if (!inventory_.unusable.empty()) {
      const UnusableDevice& first = inventory_.unusable.front();
      why += fmt::format("; {} more cannot be used, such as number {} of NVML's list: {}",
                         Count(inventory_.unusable.size(), "GPU"), first.nvml_index,
                         NvmlCodeText(first.code));
    }
    return Fail(ErrorCode::kFailedPrecondition,
                fmt::format("{} but only {}{}{}; lower --nproc-per-node, make more GPUs visible, "
                            "let workers share them with --gpu-binding=inherit, or run on CPUs "
                            "with CUDA_VISIBLE_DEVICES=''",
                            Count(selection_.workers.size(), "worker"),
                            Count(pool_.entries.size(), "GPU"), where, why));
  }

  void BindToPool() {
    const std::size_t count = selection_.workers.size();
    const bool exclusive =
        request_.binding == GpuBinding::kExclusive || request_.virtual_local_rank;
    const bool single = AnySingle(pool_);
    if (single && !exclusive && count > 1) {
      Warn(
          "with MIG each worker sees only its own instance, as cuda:0, while LOCAL_RANK counts "
          "on: a script that calls set_device(LOCAL_RANK) fails with 'invalid device ordinal'; "
          "--gpu-binding=exclusive sets LOCAL_RANK to 0");
    }
    const std::vector<std::string> texts = WriteEntries(count);
    for (std::size_t rank = 0; rank < count; ++rank) {
      WorkerDevices& worker = selection_.workers[rank];
      worker.environment.push_back(
          {kCudaVisibleDevices, exclusive || single ? texts[rank] : Join(texts, ",")});
      if (exclusive) {
        worker.environment.push_back({"LOCAL_RANK", "0"});
      }
    }
    DescribeByRank();
  }

  // The first `count` entries in the format asked for. Entries that cannot be written so keep their
  // spelling, all of them: CUDA takes no list of mixed kinds.
  std::vector<std::string> WriteEntries(std::size_t count) {
    std::vector<std::string> given;
    std::vector<std::string> written;
    for (std::size_t i = 0; i < count; ++i) {
      const VisibleDevice& entry = pool_.entries[i];
      given.push_back(entry.text);
      std::optional<std::string> text = WriteDevice(entry, inventory_, request_);
      if (text) {
        written.push_back(std::move(*text));
      }
    }
    if (written.size() == count) {
      return written;
    }
    Warn(fmt::format("the GPUs cannot be named by {} here, so CUDA_VISIBLE_DEVICES keeps '{}'",
                     request_.id_format == DeviceIdFormat::kUuid ? "UUID" : "number",
                     Join(given, ",")));
    return given;
  }

  void DescribeByRank() {
    for (std::size_t rank = 0; rank < selection_.workers.size(); ++rank) {
      WorkerDevices& worker = selection_.workers[rank];
      if (rank < pool_.entries.size()) {
        worker.text = DescribeDevice(pool_.entries[rank], inventory_);
        worker.device = pool_.entries[rank].number;
      } else {
        worker.text = WithoutGpus() ? "no GPU" : pool_.counted ? "no GPU of its own" : "not known";
      }
    }
  }

  const DeviceRequest& request_;
  const DeviceInventory& inventory_;
  DevicePool pool_;
  DeviceSelection selection_;
};

}  // namespace

bool NeedsInventory(const DeviceRequest& request) {
  const WorkerCountRequest::Kind kind = request.workers.kind;
  if (!request.gpus.empty()) {
    return true;
  }
  if (request.cuda_visible_devices && HidesAllDevices(*request.cuda_visible_devices)) {
    return false;
  }
  if (kind == WorkerCountRequest::Kind::kXpu) {
    return false;
  }
  if (kind != WorkerCountRequest::Kind::kNumber && kind != WorkerCountRequest::Kind::kCpu) {
    return true;
  }
  if (request.virtual_local_rank && request.id_format == DeviceIdFormat::kAsGiven) {
    return !request.cuda_visible_devices && !request.hip_visible_devices;
  }
  const bool left_alone =
      request.binding == GpuBinding::kInherit ||
      (request.binding == GpuBinding::kShared && kind == WorkerCountRequest::Kind::kCpu);
  return request.virtual_local_rank || !left_alone;
}

Expected<DeviceSelection> SelectDevices(const DeviceRequest& request,
                                        const DeviceInventory& inventory) {
  return Selector(request, inventory).Select();
}

}  // namespace ddprun
