#include "agent/gpu/device_selection.h"

#include <rapidcheck.h>

#include <algorithm>
#include <set>

#include "rendezvous/base/text.h"
#include "tests/support/catch.h"
#include "tests/unit/gpu/sample_inventory.h"

namespace ddprun {
namespace {

struct Sample {
  DeviceInventory inventory;
  DeviceRequest request;
  std::vector<std::string> pool;  // What the workers may see, in order.
};

// A machine of up to nine GPUs and, most of the time, a list of some of them in any order.
Sample AnySample() {
  Sample sample;
  const auto count = *rc::gen::inRange<std::size_t>(1, 10);
  sample.inventory = SampleInventory(count);
  std::vector<std::string> all;
  const bool by_uuid = *rc::gen::arbitrary<bool>();
  for (std::size_t number = 0; number < count; ++number) {
    all.push_back(by_uuid ? SampleUuid(number) : std::to_string(number));
  }
  sample.pool = all;
  if (by_uuid || *rc::gen::arbitrary<bool>()) {
    const auto keys = *rc::gen::container<std::vector<int>>(count, rc::gen::arbitrary<int>());
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) {
      order[i] = i;
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
    sample.pool.clear();
    const auto kept = *rc::gen::inRange<std::size_t>(1, count + 1);
    for (std::size_t i = 0; i < kept; ++i) {
      sample.pool.push_back(all[order[i]]);
    }
    sample.request.cuda_visible_devices = Join(sample.pool, ",");
  }
  return sample;
}

std::vector<std::string> Seen(const WorkerDevices& worker) {
  for (const EnvironmentChange& change : worker.environment) {
    if (change.name == "CUDA_VISIBLE_DEVICES") {
      return Split(change.value, ',');
    }
  }
  return {};
}

// Whether `part` comes from `whole` by leaving out elements.
bool IsSubsequence(const std::vector<std::string>& part, const std::vector<std::string>& whole) {
  auto from = whole.begin();
  return std::all_of(part.begin(), part.end(), [&](const std::string& element) {
    from = std::find(from, whole.end(), element);
    return from != whole.end() && (++from, true);
  });
}

TEST_CASE("every worker sees a part of the pool in the pool's order, its own among it") {
  CHECK(rc::check([] {
    Sample sample = AnySample();
    const auto count = *rc::gen::inRange<std::size_t>(1, sample.pool.size() + 1);
    sample.request.workers = {WorkerCountRequest::Kind::kNumber, static_cast<std::uint32_t>(count)};
    sample.request.binding = *rc::gen::element(GpuBinding::kShared, GpuBinding::kExclusive);
    const Expected<DeviceSelection> selection = SelectDevices(sample.request, sample.inventory);
    RC_ASSERT(selection.has_value());
    RC_ASSERT(selection->workers.size() == count);
    for (std::size_t rank = 0; rank < count; ++rank) {
      const std::vector<std::string> seen = Seen(selection->workers[rank]);
      RC_ASSERT(IsSubsequence(seen, sample.pool));
      const bool shared = sample.request.binding == GpuBinding::kShared;
      RC_ASSERT(seen.size() == (shared ? count : 1));
      RC_ASSERT(seen[shared ? rank : 0] == sample.pool[rank]);
    }
  }));
}

TEST_CASE("exclusive workers share no device") {
  CHECK(rc::check([] {
    Sample sample = AnySample();
    sample.request.binding = GpuBinding::kExclusive;
    const Expected<DeviceSelection> selection = SelectDevices(sample.request, sample.inventory);
    RC_ASSERT(selection.has_value());
    std::set<std::string> texts;
    std::set<std::size_t> devices;
    for (const WorkerDevices& worker : selection->workers) {
      texts.insert(Seen(worker).at(0));
      devices.insert(worker.device.value());
    }
    RC_ASSERT(texts.size() == sample.pool.size());
    RC_ASSERT(devices.size() == sample.pool.size());
  }));
}

TEST_CASE("gpu, auto and the default count the pool, and one more is an error") {
  CHECK(rc::check([] {
    Sample sample = AnySample();
    sample.request.workers.kind =
        *rc::gen::element(WorkerCountRequest::Kind::kGpu, WorkerCountRequest::Kind::kAuto,
                          WorkerCountRequest::Kind::kOnePerGpu);
    const Expected<DeviceSelection> selection = SelectDevices(sample.request, sample.inventory);
    RC_ASSERT(selection.has_value());
    RC_ASSERT(selection->workers.size() == sample.pool.size());
    sample.request.workers = {WorkerCountRequest::Kind::kNumber,
                              static_cast<std::uint32_t>(sample.pool.size() + 1)};
    RC_ASSERT(!SelectDevices(sample.request, sample.inventory).has_value());
  }));
}

TEST_CASE("--gpus never reaches outside the pool and keeps its own order") {
  CHECK(rc::check([] {
    Sample sample = AnySample();
    const auto first = *rc::gen::inRange<std::size_t>(0, 10);
    const auto second = *rc::gen::inRange<std::size_t>(0, 10);
    RC_PRE(first != second);
    for (const std::size_t number : {first, second}) {
      sample.request.gpus.push_back(std::to_string(number));
    }
    const Expected<DeviceSelection> selection = SelectDevices(sample.request, sample.inventory);
    const auto allowed = [&](std::size_t number) {
      return std::count(sample.pool.begin(), sample.pool.end(), std::to_string(number)) +
                 std::count(sample.pool.begin(), sample.pool.end(), SampleUuid(number)) >
             0;
    };
    RC_ASSERT(selection.has_value() == (allowed(first) && allowed(second)));
    if (selection) {
      RC_ASSERT(selection->workers.at(0).device == first);
      RC_ASSERT(selection->workers.at(1).device == second);
    }
  }));
}

TEST_CASE("any text as CUDA_VISIBLE_DEVICES gives distinct devices of the machine") {
  CHECK(rc::check([] {
    const DeviceInventory inventory = SampleInventory(4);
    const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
        "0", "1", "3", "4", "-1", "GPU-00000001", "GPU-0", "MIG-a", " 2 ", "+0", "", "x", "1x"));
    const DevicePool pool =
        ParseVisibleDevices(Join(pieces, ","), inventory, DeviceOrder::kPciBusId);
    std::set<std::size_t> devices;
    for (const VisibleDevice& entry : pool.entries) {
      RC_ASSERT(entry.number.has_value());
      RC_ASSERT(*entry.number < 4U);
      RC_ASSERT(devices.insert(*entry.number).second);
    }
    RC_ASSERT(pool.entries.size() <= pieces.size());
    RC_ASSERT(pool.warnings.size() <= 1U);
  }));
}

}  // namespace
}  // namespace ddprun
