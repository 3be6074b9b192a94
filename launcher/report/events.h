#pragma once

// torchelastic's events (torch 2.15, elastic/events): what --event-log-handler=console prints to
// stderr, one JSON object per line, for each change of state of the agent and its workers. Same
// keys, same order, same types. Called by NodeAgent on its thread.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "agent/core/process_failure.h"
#include "rendezvous/base/error.h"

namespace ddprun {

// The same in every event of a job.
struct EventContext {
  std::string run_id;
  std::string role;
  std::string hostname;      // Fully qualified.
  std::string rdzv_backend;  // "c10d", "static".
  std::string program;       // What workers execute; the event shows its base name.
};

// In which state the group is; before the first rendezvous no rank is known.
struct EventGroup {
  std::optional<std::uint32_t> group_rank;
  std::optional<std::uint32_t> group_world_size;
  std::int64_t total_run_time_s = 0;  // 0 until the agent's run has ended.
  std::uint32_t agent_restarts = 0;   // Of the budget, so far.
};

struct EventWorker {
  std::uint32_t local_rank = 0;
  std::uint32_t global_rank = 0;
  std::uint32_t role_rank = 0;
  std::uint32_t role_world_size = 0;
  int pid = 0;
};

enum class EventState { kStart, kSucceeded, kFailed, kTerminated, kRendezvous, kAssignWorkerRanks };

// One event of a worker: kStart; at the end of the run kSucceeded, kFailed (with its failure;
// those that we stopped too, unless they ended 0) or kTerminated (ended without a failure while the
// group failed).
std::string FormatWorkerEvent(const EventContext& context, const EventGroup& group,
                              EventState state, const EventWorker& worker,
                              const ProcessFailure* failure);

// One event of the agent: kRendezvous and kAssignWorkerRanks with their durations, kSucceeded when
// the run is over (even if workers failed), kFailed with the reason otherwise.
struct AgentEvent {
  EventState state = EventState::kSucceeded;
  std::optional<double> duration_ms;
  std::optional<std::string> raw_error;
};
std::string FormatAgentEvent(const EventContext& context, const EventGroup& group,
                             const AgentEvent& event);

// The destination that --event-log-handler names. `console` prints, `null` (the default) and
// `dynamic_rendezvous` do not; anything else is an error (torch: KeyError at the first event, exit
// code 1). `info_enabled`: LOGLEVEL is INFO, lower or unset; torch's events vanish otherwise.
class EventLog {
 public:
  using Sink = std::function<void(std::string_view line)>;  // Each line ends with a newline.

  static Expected<EventLog> Make(std::string_view handler, bool info_enabled, Sink sink);

  // False: nothing would be printed, so nothing need be formatted.
  bool enabled() const { return sink_ != nullptr; }
  void Print(const std::string& event) const;

 private:
  explicit EventLog(Sink sink) : sink_(std::move(sink)) {}

  Sink sink_;  // Empty when nothing is to be printed.
};

}  // namespace ddprun
