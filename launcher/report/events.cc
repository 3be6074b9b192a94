#include "launcher/report/events.h"

#include <fmt/format.h>

#include <utility>

#include "launcher/report/python_json.h"

namespace ddprun {
namespace {

std::string_view NameOf(EventState state) {
  switch (state) {
    case EventState::kStart:
      return "START";
    case EventState::kSucceeded:
      return "SUCCEEDED";
    case EventState::kFailed:
      return "FAILED";
    case EventState::kTerminated:
      return "TERMINATED";
    case EventState::kRendezvous:
      return "RENDEZVOUS";
    case EventState::kAssignWorkerRanks:
      break;
  }
  return "ASSIGN_WORKER_RANKS";
}

template <typename T>
OrderedJson OrNull(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0.
}

// json.dumps(ProcessFailure.error_file_data): the record, or what torch puts in its place.
std::string RawError(const ProcessFailure& failure) {
  if (!failure.record.empty()) {
    return failure.record;
  }
  OrderedJson data;
  data["message"] = failure.headline.empty() ? "<NONE>" : failure.headline;
  if (failure.headline.empty() && failure.status.kind == ExitStatus::Kind::kExited) {
    data["errorTraits"]["category"] = "system_terminated_error";
    data["errorTraits"]["retryability"] = "False";
  }
  return DumpAsPython(data);
}

OrderedJson InnerMetadata(const EventContext& context, const EventGroup& group) {
  OrderedJson inner;
  inner["group_world_size"] = OrNull(group.group_world_size);
  inner["entry_point"] = BaseName(context.program);
  return inner;
}

struct EventParts {
  std::string_view state;
  std::string_view source;
  OrderedJson global_rank = nullptr;
  OrderedJson worker_id = nullptr;
  OrderedJson raw_error = nullptr;
  OrderedJson duration_ms = nullptr;
  OrderedJson inner;
};

std::string Format(const EventContext& context, const EventGroup& group, EventParts parts) {
  OrderedJson metadata;
  metadata["run_id"] = context.run_id;
  metadata["global_rank"] = std::move(parts.global_rank);
  metadata["group_rank"] = OrNull(group.group_rank);
  metadata["worker_id"] = std::move(parts.worker_id);
  metadata["role"] = context.role;
  metadata["hostname"] = context.hostname;
  metadata["state"] = parts.state;
  metadata["total_run_time"] = group.total_run_time_s;
  metadata["rdzv_backend"] = context.rdzv_backend;
  metadata["raw_error"] = std::move(parts.raw_error);
  metadata["metadata"] = DumpAsPython(parts.inner);
  metadata["agent_restarts"] = group.agent_restarts;
  metadata["duration_ms"] = std::move(parts.duration_ms);

  OrderedJson event;
  event["name"] = fmt::format("torchelastic.worker.status.{}", parts.state);
  event["source"] = parts.source;
  event["timestamp"] = 0;
  event["metadata"] = std::move(metadata);
  return DumpAsPython(event);
}

// Torch wraps each of a worker's values into a list of one.
OrderedJson One(OrderedJson value) {
  OrderedJson list = OrderedJson::array();
  list.push_back(std::move(value));
  return list;
}

}  // namespace

std::string FormatWorkerEvent(const EventContext& context, const EventGroup& group,
                              EventState state, const EventWorker& worker,
                              const ProcessFailure* failure) {
  EventParts parts;
  parts.state = NameOf(state);
  parts.source = "WORKER";
  parts.global_rank = worker.global_rank;
  parts.worker_id = std::to_string(worker.pid);
  parts.inner = InnerMetadata(context, group);
  parts.inner["local_rank"] = One(worker.local_rank);
  parts.inner["role_rank"] = One(worker.role_rank);
  parts.inner["role_world_size"] = One(worker.role_world_size);
  parts.inner["exit_code"] = One(nullptr);
  parts.inner["worker_pid"] = One(nullptr);
  if (failure != nullptr) {
    parts.raw_error = RawError(*failure);
    parts.inner["exit_code"] = One(failure->status.exit_code());
    parts.inner["worker_pid"] = One(failure->pid);
  }
  return Format(context, group, std::move(parts));
}

std::string FormatAgentEvent(const EventContext& context, const EventGroup& group,
                             const AgentEvent& event) {
  EventParts parts;
  parts.state = NameOf(event.state);
  parts.source = "AGENT";
  parts.raw_error = OrNull(event.raw_error);
  parts.duration_ms = OrNull(event.duration_ms);
  parts.inner = InnerMetadata(context, group);
  return Format(context, group, std::move(parts));
}

Expected<EventLog> EventLog::Make(std::string_view handler, bool info_enabled, Sink sink) {
  if (handler == "console") {
    return EventLog(info_enabled ? std::move(sink) : Sink());
  }
  if (handler == "null" || handler == "dynamic_rendezvous") {
    return EventLog(Sink());
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("--event-log-handler '{}': no such handler; console, null and "
                          "dynamic_rendezvous are known",
                          handler));
}

void EventLog::Print(const std::string& event) const {
  if (sink_) {
    sink_(event + "\n");
  }
}

}  // namespace ddprun
