#pragma once

// Short ways to ask the device selection and to look at its answer.

#include <string>
#include <vector>

#include "agent/gpu/device_selection.h"
#include "rendezvous/base/text.h"
#include "tests/support/catch.h"

namespace ddprun {

using Kind = WorkerCountRequest::Kind;

inline DeviceRequest Number(std::uint32_t number) {
  DeviceRequest request;
  request.workers = {Kind::kNumber, number};
  return request;
}

inline DeviceRequest Of(Kind kind) {
  DeviceRequest request;
  request.workers.kind = kind;
  request.cpu_count = 6;
  return request;
}

inline DeviceSelection Select(const DeviceRequest& request, const DeviceInventory& inventory) {
  Expected<DeviceSelection> selection = SelectDevices(request, inventory);
  INFO((selection ? "" : selection.error().message));
  REQUIRE(selection.has_value());
  return *selection;
}

inline std::string ErrorOf(const DeviceRequest& request, const DeviceInventory& inventory) {
  const Expected<DeviceSelection> selection = SelectDevices(request, inventory);
  REQUIRE_FALSE(selection.has_value());
  return selection.error().message;
}

// "-" when the worker's environment does not set it.
inline std::string Value(const WorkerDevices& worker, const std::string& name) {
  for (const EnvironmentChange& change : worker.environment) {
    if (change.name == name) {
      return change.value;
    }
  }
  return "-";
}

// The variable of every worker, separated by blanks.
inline std::string Values(const DeviceSelection& selection, const std::string& name) {
  std::vector<std::string> values;
  for (const WorkerDevices& worker : selection.workers) {
    values.push_back(Value(worker, name));
  }
  return Join(values, " ");
}

inline std::string Cuda(const DeviceSelection& selection) {
  return Values(selection, "CUDA_VISIBLE_DEVICES");
}

inline bool Contains(const std::vector<std::string>& texts, const std::string& part) {
  for (const std::string& text : texts) {
    if (text.find(part) != std::string::npos) {
      return true;
    }
  }
  return false;
}

inline bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace ddprun
