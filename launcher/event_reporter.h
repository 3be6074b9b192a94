#pragma once

// EventReporter: prints torchelastic's events (--event-log-handler) as the job goes on. Owned by
// Launch(); called on the agent's loop.

#include <cstdint>
#include <map>
#include <vector>

#include "agent/node_agent.h"
#include "launcher/report/events.h"

namespace ddprun {

class EventReporter {
 public:
  EventReporter(EventLog log, EventContext context)
      : log_(std::move(log)), context_(std::move(context)) {}
  EventReporter(const EventReporter&) = delete;
  EventReporter& operator=(const EventReporter&) = delete;

  bool enabled() const { return log_.enabled(); }
  void OnRendezvous(const RendezvousInfo& round, Duration took);
  void OnWorkerStarted(std::uint32_t local_rank, pid_t pid);
  void OnAttemptFailed() { ++restarts_; }
  // The workers' last states and the agent's.
  void OnEnd(const NodeAgentResult& result);
  // The agent could not run the job at all.
  void OnAgentFailed(const std::string& reason);

 private:
  EventGroup Group(std::int64_t total_run_time_s) const;
  EventWorker Worker(std::uint32_t local_rank, pid_t pid) const;

  EventLog log_;
  EventContext context_;
  RendezvousInfo round_;
  bool in_round_ = false;
  std::uint32_t restarts_ = 0;
};

}  // namespace ddprun
