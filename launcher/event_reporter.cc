#include "launcher/event_reporter.h"

#include <algorithm>
#include <chrono>

namespace ddprun {

EventGroup EventReporter::Group(std::int64_t total_run_time_s) const {
  EventGroup group;
  if (in_round_) {
    group.group_rank = round_.ranks.group_rank;
    group.group_world_size = round_.ranks.group_world_size;
  }
  group.total_run_time_s = total_run_time_s;
  group.agent_restarts = restarts_;
  return group;
}

EventWorker EventReporter::Worker(std::uint32_t local_rank, pid_t pid) const {
  EventWorker worker;
  worker.local_rank = local_rank;
  worker.global_rank = round_.ranks.global_rank_base + local_rank;
  worker.role_rank = round_.ranks.role_rank_base + local_rank;
  worker.role_world_size = round_.ranks.role_world_size;
  worker.pid = pid;
  return worker;
}

void EventReporter::OnRendezvous(const RendezvousInfo& round, Duration took) {
  if (enabled()) {
    // As torch: both still show the ranks of the round before, or none.
    AgentEvent event;
    event.duration_ms = std::chrono::duration<double, std::milli>(took).count();
    event.state = EventState::kRendezvous;
    log_.Print(FormatAgentEvent(context_, Group(0), event));
    event.state = EventState::kAssignWorkerRanks;
    log_.Print(FormatAgentEvent(context_, Group(0), event));
  }
  round_ = round;
  in_round_ = true;
}

void EventReporter::OnWorkerStarted(std::uint32_t local_rank, pid_t pid) {
  if (enabled()) {
    log_.Print(FormatWorkerEvent(context_, Group(0), EventState::kStart, Worker(local_rank, pid),
                                 nullptr));
  }
}

void EventReporter::OnEnd(const NodeAgentResult& result) {
  if (!enabled()) {
    return;
  }
  const EventGroup group =
      Group(std::chrono::duration_cast<std::chrono::seconds>(result.ran_for).count());
  const bool succeeded = result.run.state == WorkerState::kSucceeded;
  for (std::uint32_t local_rank = 0; local_rank < result.pids.size(); ++local_rank) {
    const auto failure = std::find_if(result.failures.begin(), result.failures.end(),
                                      [local_rank](const ProcessFailure& candidate) {
                                        return candidate.local_rank == local_rank;
                                      });
    const bool failed = failure != result.failures.end();
    const EventState state = succeeded ? EventState::kSucceeded
                             : failed  ? EventState::kFailed
                                       : EventState::kTerminated;
    log_.Print(FormatWorkerEvent(context_, group, state,
                                 Worker(local_rank, result.pids[local_rank]),
                                 failed ? &*failure : nullptr));
  }
  AgentEvent event;
  event.state =
      result.run.state == WorkerState::kStopped ? EventState::kFailed : EventState::kSucceeded;
  if (event.state == EventState::kFailed) {
    event.raw_error = "stopped by " + SignalName(result.run.signal);
  }
  log_.Print(FormatAgentEvent(context_, group, event));
}

void EventReporter::OnAgentFailed(const std::string& reason) {
  if (enabled()) {
    AgentEvent event;
    event.state = EventState::kFailed;
    event.raw_error = reason;
    log_.Print(FormatAgentEvent(context_, Group(0), event));
  }
}

}  // namespace ddprun
