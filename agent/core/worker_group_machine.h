#pragma once

// WorkerGroupMachine: the life of the workers of one agent, through failures, restarts and signals.
// Pure: the NodeAgent turns what happens into events, steps the machine with the time, and carries
// out the actions in order.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "agent/core/exit_status.h"
#include "agent/core/restart_policy.h"
#include "agent/core/run_result.h"
#include "rendezvous/base/clock.h"

namespace ddprun {

struct WorkerGroupSettings {
  std::uint32_t local_world_size = 1;
  std::uint32_t max_restarts = 0;
  Duration shutdown_timeout{};  // Grace between the stop signal and SIGKILL, on every path that
                                // stops workers.
  Duration
      kill_timeout{};  // How long what was sent SIGKILL may take to go before it is left and named.
};

namespace group_event {

struct Begin {};                // Once, first.
struct RendezvousCompleted {};  // The round is known and, on group rank 0, its store listens.
struct RendezvousFailed {
  std::string reason;
};
struct SpawnFailed {  // One worker could not be started; others of the attempt may be running.
  std::uint32_t local_rank;
  std::string reason;
};
struct WorkerExited {
  std::uint32_t local_rank;
  ExitStatus status;
};
struct WorkerUninterruptible {  // In state D for longer than the user allows.
  std::uint32_t local_rank;
  std::string reason;
};
struct TreeEmpty {};  // No process that the workers started is left.
struct SignalReceived {
  int signal;  // What arrived.
  int forward =
      signal;  // What the workers get; torch sends SIGTERM for a signal it does not handle.
};
struct HostPaused {  // The launcher itself was stopped for this long (Ctrl-Z): deadlines move.
  Duration pause;
};
struct Tick {};

}  // namespace group_event

using GroupEvent =
    std::variant<group_event::Begin, group_event::RendezvousCompleted,
                 group_event::RendezvousFailed, group_event::SpawnFailed, group_event::WorkerExited,
                 group_event::WorkerUninterruptible, group_event::TreeEmpty,
                 group_event::SignalReceived, group_event::HostPaused, group_event::Tick>;

namespace group_action {

// Ask for the next round; answered by RendezvousCompleted or RendezvousFailed.
struct JoinRendezvous {
  std::uint32_t restart_count;
  friend bool operator==(const JoinRendezvous&, const JoinRendezvous&) = default;
};
// Start every worker. Afterwards each one is answered by exactly one WorkerExited, or SpawnFailed.
struct StartWorkers {
  std::uint32_t restart_count;
  friend bool operator==(const StartWorkers&, const StartWorkers&) = default;
};
// Send the signal (and SIGCONT) to the whole tree; answered by WorkerExited and, at the end,
// TreeEmpty.
struct SignalTree {
  int signal;
  friend bool operator==(const SignalTree&, const SignalTree&) = default;
};
struct KillTree {
  friend bool operator==(const KillTree&, const KillTree&) = default;
};
// The attempt is over and will be followed by another: tell people, close its store and its log
// files.
struct ReportFailedAttempt {
  std::vector<WorkerOutcome> outcomes;
};
struct Finish {
  RunResult result;
};

}  // namespace group_action

using GroupAction =
    std::variant<group_action::JoinRendezvous, group_action::StartWorkers, group_action::SignalTree,
                 group_action::KillTree, group_action::ReportFailedAttempt, group_action::Finish>;

// | phase     | Begin | rendezvous ok | failed   | spawn failed | worker exits            | tree
// empty | signal         | | --------- | ----- | ------------- | -------- | ------------ |
// ----------------------- | ---------- | -------------- | | Waiting   | Join  | -> Running    | ->
// Done  | -            | -                       | -          | -> Done        | | Running   | - |
// -             | -        | -> Stopping  | last 0: -> Stopping     | -          | -> Stopping    |
// |           |       |               |          |              | not 0: -> Stopping      | | | |
// Stopping  | -     | -             | -        | noted        | noted                   | ->
// Waiting | 1st: forwarded | |           |       |               |          |              | | or
// Done    | 2nd: kill      | | Done      | everything is ignored |
//
// A group that ended well passes through Stopping too: what its workers left running is ended in
// the same way. The first failure of an attempt decides what follows it; later exits are only
// noted. A signal in Stopping turns a restart into an end, and the grace keeps running from where
// it was; when all workers have ended well, it only ends the grace of what they left.
class WorkerGroupMachine {
 public:
  explicit WorkerGroupMachine(WorkerGroupSettings settings);

  std::vector<GroupAction> Step(const GroupEvent& event, TimePoint now);

  // When Step(Tick{}) is due; nullopt while nothing is pending.
  std::optional<TimePoint> NextDeadline() const;

  // Why the group is where it is, in one sentence.
  std::string Explain(TimePoint now) const;

  WorkerState state() const { return state_; }
  std::uint32_t restart_count() const { return policy_.restart_count(); }

 private:
  struct Waiting {};
  struct Running {};
  struct Stopping {
    enum class Then { kSucceed, kFailOrRestart, kFail, kStop };
    Then then;
    TimePoint kill_at;
    std::optional<TimePoint> give_up_at;  // Set once SIGKILL has been sent.
  };
  struct Done {};
  using Phase = std::variant<Waiting, Running, Stopping, Done>;
  using Actions = std::vector<GroupAction>;

  void On(const group_event::Begin& event, TimePoint now, Actions& actions);
  void On(const group_event::RendezvousCompleted& event, TimePoint now, Actions& actions);
  void On(const group_event::RendezvousFailed& event, TimePoint now, Actions& actions);
  void On(const group_event::SpawnFailed& event, TimePoint now, Actions& actions);
  void On(const group_event::WorkerExited& event, TimePoint now, Actions& actions);
  void On(const group_event::WorkerUninterruptible& event, TimePoint now, Actions& actions);
  void On(const group_event::TreeEmpty& event, TimePoint now, Actions& actions);
  void On(const group_event::SignalReceived& event, TimePoint now, Actions& actions);
  void On(const group_event::HostPaused& event, TimePoint now, Actions& actions);
  void On(const group_event::Tick& event, TimePoint now, Actions& actions);

  void BeginStop(Stopping::Then then, int signal, TimePoint now, Actions& actions);
  void Kill(Stopping& stopping, TimePoint now, Actions& actions);
  void EndAttempt(const Stopping& stopping, Actions& actions);
  void EndJob(WorkerState state, Actions& actions);
  void CheckInvariants() const;

  WorkerGroupSettings settings_;
  RestartPolicy policy_;
  Phase phase_ = Waiting{};
  WorkerState state_ = WorkerState::kInit;
  std::set<std::uint32_t> alive_;  // Local ranks that have not ended.
  RunResult result_;
};

}  // namespace ddprun
