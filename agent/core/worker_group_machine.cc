#include "agent/core/worker_group_machine.h"

#include <fmt/format.h>

#include <utility>

#include "rendezvous/base/check.h"

namespace ddprun {
namespace {

// Signal numbers by value: this folder knows no POSIX header. They are the same on every Linux we
// support.
constexpr int kSigTerm = 15;

double Seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

WorkerGroupMachine::WorkerGroupMachine(WorkerGroupSettings settings)
    : settings_(settings), policy_(settings.max_restarts) {
  DDP_CHECK(settings_.local_world_size > 0);
}

std::vector<GroupAction> WorkerGroupMachine::Step(const GroupEvent& event, TimePoint now) {
  Actions actions;
  std::visit([&](const auto& concrete) { On(concrete, now, actions); }, event);
  CheckInvariants();
  return actions;
}

std::optional<TimePoint> WorkerGroupMachine::NextDeadline() const {
  const auto* stopping = std::get_if<Stopping>(&phase_);
  if (stopping == nullptr) {
    return std::nullopt;
  }
  return stopping->give_up_at ? *stopping->give_up_at : stopping->kill_at;
}

void WorkerGroupMachine::On(const group_event::Begin& /*event*/, TimePoint /*now*/,
                            Actions& actions) {
  DDP_CHECK(std::holds_alternative<Waiting>(phase_));
  actions.push_back(group_action::JoinRendezvous{policy_.restart_count()});
}

void WorkerGroupMachine::On(const group_event::RendezvousCompleted& /*event*/, TimePoint /*now*/,
                            Actions& actions) {
  if (!std::holds_alternative<Waiting>(phase_)) {
    return;
  }
  phase_ = Running{};
  state_ = WorkerState::kHealthy;
  ++result_.attempts;
  result_.outcomes.clear();
  result_.reason.clear();
  for (std::uint32_t local_rank = 0; local_rank < settings_.local_world_size; ++local_rank) {
    alive_.insert(local_rank);
  }
  actions.push_back(group_action::StartWorkers{policy_.restart_count()});
}

void WorkerGroupMachine::On(const group_event::RendezvousFailed& event, TimePoint /*now*/,
                            Actions& actions) {
  if (std::holds_alternative<Waiting>(phase_)) {
    result_.reason = event.reason;
    EndJob(WorkerState::kFailed, actions);
  }
}

void WorkerGroupMachine::On(const group_event::SpawnFailed& event, TimePoint now,
                            Actions& actions) {
  alive_.erase(event.local_rank);
  if (result_.reason.empty()) {
    result_.reason = event.reason;
  }
  // A command that cannot be executed will not be executable a second later: no restart (as torch).
  if (std::holds_alternative<Running>(phase_)) {
    BeginStop(Stopping::Then::kFail, kSigTerm, now, actions);
  } else if (auto* stopping = std::get_if<Stopping>(&phase_)) {
    stopping->then =
        stopping->then == Stopping::Then::kStop ? stopping->then : Stopping::Then::kFail;
  }
}

void WorkerGroupMachine::On(const group_event::WorkerExited& event, TimePoint now,
                            Actions& actions) {
  if (alive_.erase(event.local_rank) == 0) {
    return;
  }
  const auto* stopping = std::get_if<Stopping>(&phase_);
  result_.outcomes.push_back(
      WorkerOutcome{event.local_rank, event.status, stopping != nullptr,
                    stopping != nullptr && stopping->give_up_at.has_value()});
  if (stopping != nullptr) {
    return;
  }
  if (!event.status.success()) {
    BeginStop(Stopping::Then::kFailOrRestart, kSigTerm, now, actions);
  } else if (alive_.empty()) {
    BeginStop(Stopping::Then::kSucceed, kSigTerm, now, actions);
  }
}

void WorkerGroupMachine::On(const group_event::WorkerUninterruptible& event, TimePoint now,
                            Actions& actions) {
  if (!std::holds_alternative<Running>(phase_)) {
    return;
  }
  state_ = WorkerState::kUnhealthy;
  result_.reason = event.reason;
  BeginStop(Stopping::Then::kFail, kSigTerm, now, actions);
}

void WorkerGroupMachine::On(const group_event::TreeEmpty& /*event*/, TimePoint /*now*/,
                            Actions& actions) {
  const auto* stopping = std::get_if<Stopping>(&phase_);
  if (stopping == nullptr || !alive_.empty()) {
    return;
  }
  EndAttempt(Stopping(*stopping), actions);
}

void WorkerGroupMachine::On(const group_event::SignalReceived& event, TimePoint now,
                            Actions& actions) {
  if (std::holds_alternative<Done>(phase_)) {
    return;
  }
  const bool first = result_.signal == 0;
  if (first) {
    result_.signal = event.signal;
  }
  if (std::holds_alternative<Waiting>(phase_)) {
    result_.before_start = result_.attempts == 0;
    EndJob(WorkerState::kStopped, actions);
  } else if (std::holds_alternative<Running>(phase_)) {
    BeginStop(Stopping::Then::kStop, event.forward, now, actions);
  } else {
    auto& stopping = std::get<Stopping>(phase_);
    if (!first || stopping.then == Stopping::Then::kSucceed) {
      Kill(stopping, now, actions);
    } else {
      stopping.then = Stopping::Then::kStop;
      actions.push_back(group_action::SignalTree{event.forward});
    }
  }
}

void WorkerGroupMachine::On(const group_event::HostPaused& event, TimePoint /*now*/,
                            Actions& /*actions*/) {
  if (auto* stopping = std::get_if<Stopping>(&phase_)) {
    stopping->kill_at += event.pause;
    if (stopping->give_up_at) {
      *stopping->give_up_at += event.pause;
    }
  }
}

void WorkerGroupMachine::On(const group_event::Tick& /*event*/, TimePoint now, Actions& actions) {
  auto* stopping = std::get_if<Stopping>(&phase_);
  if (stopping == nullptr) {
    return;
  }
  if (!stopping->give_up_at) {
    if (now >= stopping->kill_at) {
      Kill(*stopping, now, actions);
    }
  } else if (now >= *stopping->give_up_at) {
    // What cannot be killed cannot be restarted beside either.
    result_.leftovers = true;
    EndJob(stopping->then == Stopping::Then::kStop ? WorkerState::kStopped : WorkerState::kFailed,
           actions);
  }
}

void WorkerGroupMachine::BeginStop(Stopping::Then then, int signal, TimePoint now,
                                   Actions& actions) {
  phase_ = Stopping{then, now + settings_.shutdown_timeout, std::nullopt};
  actions.push_back(group_action::SignalTree{signal});
  if (settings_.shutdown_timeout <= Duration::zero()) {
    Kill(std::get<Stopping>(phase_), now, actions);
  }
}

void WorkerGroupMachine::Kill(Stopping& stopping, TimePoint now, Actions& actions) {
  if (!stopping.give_up_at) {
    stopping.give_up_at = now + settings_.kill_timeout;
  }
  actions.push_back(group_action::KillTree{});
}

void WorkerGroupMachine::EndAttempt(const Stopping& stopping, Actions& actions) {
  switch (stopping.then) {
    case Stopping::Then::kSucceed:
      return EndJob(WorkerState::kSucceeded, actions);
    case Stopping::Then::kStop:
      return EndJob(WorkerState::kStopped, actions);
    case Stopping::Then::kFail:
      return EndJob(WorkerState::kFailed, actions);
    case Stopping::Then::kFailOrRestart:
      break;
  }
  if (!policy_.SpendOne()) {
    return EndJob(WorkerState::kFailed, actions);
  }
  actions.push_back(group_action::ReportFailedAttempt{result_.outcomes});
  phase_ = Waiting{};
  state_ = WorkerState::kInit;
  actions.push_back(group_action::JoinRendezvous{policy_.restart_count()});
}

void WorkerGroupMachine::EndJob(WorkerState state, Actions& actions) {
  phase_ = Done{};
  state_ = state;
  result_.state = state;
  actions.push_back(group_action::Finish{result_});
}

std::string WorkerGroupMachine::Explain(TimePoint now) const {
  if (std::holds_alternative<Waiting>(phase_)) {
    return "waiting for the rendezvous";
  }
  if (std::holds_alternative<Done>(phase_)) {
    return "the job is over";
  }
  if (std::holds_alternative<Running>(phase_)) {
    return fmt::format("{} of {} workers running, {} of {} restarts used", alive_.size(),
                       settings_.local_world_size, policy_.restart_count(), settings_.max_restarts);
  }
  const auto& stopping = std::get<Stopping>(phase_);
  const std::string who =
      alive_.empty() ? "processes that the workers left" : fmt::format("{} workers", alive_.size());
  if (stopping.give_up_at) {
    return fmt::format("waiting for {} after SIGKILL, giving up in {:.1f} s", who,
                       Seconds(*stopping.give_up_at - now));
  }
  return fmt::format("waiting for {} to stop, SIGKILL in {:.1f} s", who,
                     Seconds(stopping.kill_at - now));
}

void WorkerGroupMachine::CheckInvariants() const {
  DDP_CHECK(alive_.size() <= settings_.local_world_size);
  DDP_CHECK(!std::holds_alternative<Waiting>(phase_) || alive_.empty());
  DDP_CHECK(!std::holds_alternative<Running>(phase_) || !alive_.empty());
  DDP_CHECK(policy_.restart_count() <= settings_.max_restarts);
}

}  // namespace ddprun
