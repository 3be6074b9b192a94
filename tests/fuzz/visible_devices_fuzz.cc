// CUDA_VISIBLE_DEVICES and --gpus come from users and schedulers; the pipe's text from a child that
// a sick driver may have spoilt. None of it may break the launcher. The first byte picks the
// machine, the rest is the text.

#include <cstdint>
#include <string>

#include "agent/gpu/device_selection.h"
#include "rendezvous/base/check.h"
#include "rendezvous/base/text.h"
#include "tests/unit/gpu/sample_inventory.h"

namespace {

ddprun::DeviceInventory Machine(std::uint8_t choice) {
  switch (choice % 4) {
    case 0:
      return ddprun::SampleInventory(3);
    case 1:
      return {};
    case 2:
      return ddprun::NoDriver();
    default: {
      ddprun::DeviceInventory inventory = ddprun::SampleInventory(2);
      ddprun::AddInstances(inventory.devices[1], 2);
      return inventory;
    }
  }
}

void CheckPool(const ddprun::DevicePool& pool, const ddprun::DeviceInventory& inventory) {
  for (const ddprun::VisibleDevice& entry : pool.entries) {
    DDP_CHECK(!entry.text.empty());
    DDP_CHECK(!entry.number || *entry.number < inventory.devices.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const ddprun::DeviceInventory inventory = Machine(data[0]);
  CheckPool(ddprun::ParseVisibleDevices(text, inventory, ddprun::DeviceOrder::kPciBusId),
            inventory);
  ddprun::DeviceRequest request;
  request.binding =
      (data[0] & 16) != 0 ? ddprun::GpuBinding::kExclusive : ddprun::GpuBinding::kShared;
  request.virtual_local_rank = (data[0] & 32) != 0;
  request.id_format = static_cast<ddprun::DeviceIdFormat>((data[0] >> 6) % 3);
  if ((data[0] & 8) != 0) {
    request.gpus = ddprun::Split(text, ',');
  } else {
    request.cuda_visible_devices = text;
  }
  if (const auto selection = ddprun::SelectDevices(request, inventory)) {
    DDP_CHECK(!selection->workers.empty());
  }
  const ddprun::InventoryMessage message = ddprun::DecodeInventory(text);
  if (message.inventory) {
    DDP_CHECK(ddprun::DecodeInventory(ddprun::EncodeInventory(*message.inventory)).inventory ==
              message.inventory);
  }
  return 0;
}
