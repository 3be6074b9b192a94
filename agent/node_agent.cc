#include "agent/node_agent.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <utility>

#include "agent/attempt.h"
#include "agent/process/file_timer.h"
#include "agent/process/guardian.h"
#include "agent/process/log_pump.h"
#include "agent/process/logs_directory.h"
#include "agent/process/process_tree.h"
#include "agent/uninterruptible_watch.h"
#include "agent/worker_group.h"
#include "rendezvous/base/check.h"
#include "rendezvous/base/hostname.h"
#include "rendezvous/base/log.h"

namespace ddprun {
namespace {

constexpr std::chrono::seconds kDrainLimit{30};

WorkerGroupSettings GroupSettings(const NodeAgentOptions& options) {
  WorkerGroupSettings settings;
  settings.local_world_size = static_cast<std::uint32_t>(options.blueprint.workers.size());
  settings.max_restarts = options.max_restarts;
  settings.shutdown_timeout = options.shutdown_timeout;
  settings.kill_timeout = options.kill_timeout;
  return settings;
}

}  // namespace

struct NodeAgent::Impl {
  Impl(NodeAgentOptions agent_options, StartSignals start, RendezvousHandler& handler,
       std::shared_ptr<ConsoleWriter> console_writer, NodeAgentObserver agent_observer);

  std::uint32_t LocalWorldSize() const {
    return static_cast<std::uint32_t>(options.blueprint.workers.size());
  }
  Expected<void> SetUp();
  Expected<void> SetUpLogs();
  Expected<void> SetUpFileTimer();
  Expected<void> PrepareAttempt(std::uint32_t restart_count);

  // Events in, actions out. An action may cause an event at once: it waits in the queue.
  void Feed(GroupEvent event);
  void Obey(const GroupAction& action);
  void Do(const group_action::JoinRendezvous& action);
  void Do(const group_action::StartWorkers& action);
  void Do(const group_action::SignalTree& action);
  void Do(const group_action::KillTree& action);
  void Do(const group_action::ReportFailedAttempt& action);
  void Do(const group_action::Finish& action);

  void OnSignal(const ReceivedSignal& received);
  void NoteSignal(const ReceivedSignal& received);
  void OnStop();
  void OnWorkerExit(std::uint32_t local_rank, const ExitStatus& status);
  bool IsMember(pid_t pid) const;
  void OnFileTimer(const ExpiredFileTimer& expired);
  void OnRendezvous(Expected<RendezvousInfo> info, TimePoint joined_at);
  void CheckTree();
  void WatchForUninterruptible();
  void RearmDeadline();
  void KillUntilGone(Duration pause);
  void Close();

  NodeAgentOptions options;
  StartSignals start_signals;
  RendezvousHandler& rendezvous;
  std::shared_ptr<ConsoleWriter> console;
  NodeAgentObserver observer;

  asio::io_context io{1};  // One thread: no locks inside.
  WorkerGroupMachine machine;
  std::deque<GroupEvent> events;
  bool stepping = false;

  std::unique_ptr<SignalWatch> signals;
  std::optional<ProcessTree> tree;
  std::optional<Guardian> guardian;
  std::optional<LogsDirectory> logs_directory;
  std::unique_ptr<LogPump> pump;
  std::unique_ptr<FileTimerServer> file_timer;
  RoundStoreHost store;
  std::unique_ptr<WorkerGroup> group;
  Attempt attempt;

  asio::steady_timer deadline{io};
  asio::steady_timer kill_again{io};
  asio::steady_timer drain_limit{io};
  bool killing = false;  // SIGKILL is being sent until nothing of the attempt is left.
  std::unique_ptr<UninterruptibleWatch> uninterruptible;

  TimePoint started_at{};
  NodeAgentResult result;
  bool finished = false;
};

NodeAgent::Impl::Impl(NodeAgentOptions agent_options, StartSignals start,
                      RendezvousHandler& handler, std::shared_ptr<ConsoleWriter> console_writer,
                      NodeAgentObserver agent_observer)
    : options(std::move(agent_options)),
      start_signals(start),
      rendezvous(handler),
      console(std::move(console_writer)),
      observer(std::move(agent_observer)),
      machine(GroupSettings(options)),
      store(io, options.store) {}

Expected<void> NodeAgent::Impl::SetUp() {
  auto watch = SignalWatch::Start(io, WatchedSignals(options.handled_signals), start_signals,
                                  [this](const ReceivedSignal& received) { OnSignal(received); });
  if (!watch) {
    return tl::unexpected<Error>(watch.error());
  }
  signals = std::move(*watch);
  tree.emplace(ProcessTree::Create(options.job_id));
  for (LocalWorker& worker : options.blueprint.workers) {
    worker.overrides[std::string(JobMarker::kVariable)] = tree->marker().value();
  }
  Expected<Guardian> started = Guardian::Start(tree->marker());
  if (!started) {
    return tl::unexpected<Error>(started.error());
  }
  guardian.emplace(std::move(*started));
  tree->AddHelper(guardian->pid());
  tree->MakeCgroup(&*guardian);
  LogDebug("{}", tree->containment());
  if (Expected<void> made = SetUpLogs(); !made) {
    return made;
  }
  WatchForUninterruptible();
  return SetUpFileTimer();
}

Expected<void> NodeAgent::Impl::SetUpLogs() {
  Expected<LogsDirectory> made =
      LogsDirectory::Create(options.logs.log_dir, options.blueprint.run_id);
  if (!made) {
    return tl::unexpected<Error>(made.error());
  }
  logs_directory.emplace(std::move(*made));
  // Whatever kills us, a temporary folder that nobody asked for does not stay. Output that was
  // asked for does.
  if (logs_directory->is_temporary() && options.logs.redirects.empty() &&
      options.logs.tee.empty()) {
    static_cast<void>(guardian->OwnPath(logs_directory->base(), true));
  }
  pump = std::make_unique<LogPump>(console, [](std::string warning) { LogWarning("{}", warning); });
  return {};
}

Expected<void> NodeAgent::Impl::SetUpFileTimer() {
  if (options.timer_file.empty()) {
    return {};
  }
  static_cast<void>(guardian->OwnPath(options.timer_file, false));
  FileTimerServer::Callbacks callbacks;
  callbacks.is_ours = [this](pid_t pid) { return IsMember(pid); };
  callbacks.on_expired = [this](const ExpiredFileTimer& expired) { OnFileTimer(expired); };
  auto server = FileTimerServer::Start(io, options.timer_file, std::move(callbacks));
  if (!server) {
    return tl::unexpected<Error>(server.error());
  }
  file_timer = std::move(*server);
  return {};
}

void NodeAgent::Impl::WatchForUninterruptible() {
  if (!options.uninterruptible_limit) {
    return;
  }
  uninterruptible = std::make_unique<UninterruptibleWatch>(
      io, options.monitor_interval, *options.uninterruptible_limit,
      [this] { return group ? group->running_pids() : std::vector<pid_t>(); },
      [this](std::uint32_t local_rank, std::string reason) {
        Feed(group_event::WorkerUninterruptible{local_rank, std::move(reason)});
      });
}

void NodeAgent::Impl::Feed(GroupEvent event) {
  events.push_back(std::move(event));
  if (stepping) {
    return;
  }
  stepping = true;
  while (!events.empty()) {
    const GroupEvent next = std::move(events.front());
    events.pop_front();
    for (const GroupAction& action : machine.Step(next, MonotonicNow())) {
      Obey(action);
    }
  }
  stepping = false;
  RearmDeadline();
}

void NodeAgent::Impl::Obey(const GroupAction& action) {
  std::visit([this](const auto& concrete) { Do(concrete); }, action);
}

void NodeAgent::Impl::Do(const group_action::JoinRendezvous& /*action*/) {
  const TimePoint joined_at = MonotonicNow();
  NodeDesc node{options.role, LocalWorldSize()};
  rendezvous.NextRendezvous(
      node, [this] { return store.Open(); },
      [this, joined_at](Expected<RendezvousInfo> info) {
        OnRendezvous(std::move(info), joined_at);
      });
}

void NodeAgent::Impl::OnRendezvous(Expected<RendezvousInfo> info, TimePoint joined_at) {
  if (!info) {
    Feed(group_event::RendezvousFailed{info.error().message});
    return;
  }
  result.round = *info;
  if (observer.on_rendezvous) {
    observer.on_rendezvous(*info, MonotonicNow() - joined_at);
  }
  Feed(group_event::RendezvousCompleted{});
}

// The folders and files of an attempt, and what its workers are to be.
Expected<void> NodeAgent::Impl::PrepareAttempt(std::uint32_t restart_count) {
  LogsContext context;
  context.role = options.role;
  context.hostname = Hostname();
  std::vector<std::uint32_t> local_ranks;
  for (std::uint32_t local_rank = 0; local_rank < LocalWorldSize(); ++local_rank) {
    local_ranks.push_back(local_rank);
    context.ranks.push_back({local_rank, result.round.ranks.global_rank_base + local_rank});
  }
  Expected<std::string> folder = logs_directory->StartAttempt(restart_count, local_ranks);
  if (!folder) {
    return tl::unexpected<Error>(folder.error());
  }
  context.attempt_directory = *folder;
  const LogsDest dest = ReifyLogs(options.logs, context);
  const RoundView round{result.round.ranks, result.round.master_addr, result.round.master_port,
                        restart_count};
  attempt = Attempt(BuildWorkerSpecs(options.blueprint, round, dest.workers));
  return pump->OpenFilters(dest, options.logs);
}

void NodeAgent::Impl::Do(const group_action::StartWorkers& action) {
  group = std::make_unique<WorkerGroup>(
      LocalWorldSize(), WorkerGroupParts{io, *tree, *guardian, *pump, start_signals},
      [this](std::uint32_t local_rank, const ExitStatus& status) {
        OnWorkerExit(local_rank, status);
      });
  Expected<void> ready = PrepareAttempt(action.restart_count);
  for (std::uint32_t local_rank = 0; local_rank < LocalWorldSize(); ++local_rank) {
    // The first failure is the story; the rest of the group is not started.
    if (ready) {
      ready = group->StartWorker(attempt.specs()[local_rank]);
    }
    if (!ready) {
      Feed(group_event::SpawnFailed{local_rank, ready.error().message});
    } else if (observer.on_worker_started) {
      observer.on_worker_started(local_rank, group->pid(local_rank));
    }
  }
}

void NodeAgent::Impl::OnWorkerExit(std::uint32_t local_rank, const ExitStatus& status) {
  attempt.NoteExit(local_rank);
  LogInfo("worker {} (pid {}) ended: {}", local_rank, group->pid(local_rank), Describe(status));
  Feed(group_event::WorkerExited{local_rank, status});
  // Not from here: it may start the next attempt, and with it end the group that is calling.
  asio::post(io, [this] { CheckTree(); });
}

void NodeAgent::Impl::Do(const group_action::SignalTree& action) {
  attempt.NoteStop();
  for (const StubbornProcess& stubborn : tree->SignalTree(action.signal)) {
    LogWarning("sending {}: {}, ignoring", SignalName(action.signal), Describe(stubborn));
  }
  asio::post(io, [this] { CheckTree(); });
}

void NodeAgent::Impl::Do(const group_action::KillTree& /*action*/) {
  if (group != nullptr && group->running_count() > 0) {
    LogWarning("{} workers did not end within the grace of {} s: sending SIGKILL",
               group->running_count(),
               std::chrono::duration_cast<std::chrono::seconds>(options.shutdown_timeout).count());
  }
  if (!killing) {
    killing = true;
    KillUntilGone(std::chrono::milliseconds(1));
  }
}

// SIGKILL does not reach a process that is being forked at this moment: repeat until nothing is
// left.
void NodeAgent::Impl::KillUntilGone(Duration pause) {
  const std::vector<StubbornProcess> left = tree->KillOnce();
  result.leftovers.clear();
  for (const StubbornProcess& stubborn : left) {
    result.leftovers.push_back(Describe(stubborn));
  }
  if (left.empty()) {
    CheckTree();
    return;
  }
  kill_again.expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(pause));
  kill_again.async_wait([this, pause](const asio::error_code& error) {
    // The timer may have fired before it was cancelled; the next attempt must not be hit.
    if (!error && killing) {
      KillUntilGone(std::min<Duration>(pause * 2, std::chrono::milliseconds(100)));
    }
  });
}

void NodeAgent::Impl::CheckTree() {
  if (finished || group == nullptr || !machine.NextDeadline() || group->running_count() > 0) {
    return;
  }
  if (tree->Members().empty()) {
    killing = false;
    kill_again.cancel();
    result.leftovers.clear();
    Feed(group_event::TreeEmpty{});
  }
}

void NodeAgent::Impl::Do(const group_action::ReportFailedAttempt& action) {
  const std::vector<pid_t> pids = group->pids();
  if (observer.on_attempt_failed) {
    observer.on_attempt_failed(attempt.FailuresOf(action.outcomes, pids));
  }
  for (const pid_t pid : pids) {
    static_cast<void>(guardian->ForgetWorker(pid));
    tree->ForgetWorker(pid);
  }
  tree->RenewCgroup();
  store.Close();
}

void NodeAgent::Impl::Do(const group_action::Finish& action) {
  finished = true;
  killing = false;
  result.run = action.result;
  store.Close();
  if (group != nullptr) {
    result.specs = attempt.specs();
    result.pids = group->pids();
    result.failures = attempt.FailuresOf(action.result.outcomes, result.pids);
    for (std::uint32_t local_rank = 0; local_rank < result.specs.size(); ++local_rank) {
      result.ended_after.push_back(attempt.ended_after_stop(local_rank));
    }
  }
  pump->Drain(LogDrainLimits{}, [this] { asio::post(io, [this] { io.stop(); }); });
  // A disk that hangs keeps the pump, but not the launcher.
  drain_limit.expires_after(kDrainLimit);
  drain_limit.async_wait([this](const asio::error_code& error) {
    if (!error) {
      LogWarning("the log files could not be completed within {} s", kDrainLimit.count());
      io.stop();
    }
  });
}

void NodeAgent::Impl::OnSignal(const ReceivedSignal& received) {
  const int signal = received.number;
  switch (MeaningOf(signal, options.handled_signals)) {
    case SignalMeaning::kChild:
      tree->ReapOrphans();
      CheckTree();
      return;
    case SignalMeaning::kSuspend:
      return OnStop();
    case SignalMeaning::kPassOn:
      return group == nullptr ? void() : group->SignalWorkers(signal);
    case SignalMeaning::kEnd:
      NoteSignal(received);
      return Feed(group_event::SignalReceived{signal});
    case SignalMeaning::kEndUnhandled:
      NoteSignal(received);
      return Feed(group_event::SignalReceived{signal, SIGTERM});
  }
}

// The first one is the story.
void NodeAgent::Impl::NoteSignal(const ReceivedSignal& received) {
  if (result.signal.number == 0) {
    result.signal = received;
    result.signal_after = MonotonicNow() - started_at;
  }
}

// Ctrl-Z: the workers are in sessions of their own, where the terminal's stop does not reach them,
// and where SIGTSTP is ignored by the kernel (an orphaned process group), so they get SIGSTOP.
void NodeAgent::Impl::OnStop() {
  const TimePoint stopped_at = MonotonicNow();
  tree->Suspend();
  signals->RaiseWithDefault(SIGTSTP);  // Returns with `fg`.
  tree->Resume();
  Feed(group_event::HostPaused{MonotonicNow() - stopped_at});
}

bool NodeAgent::Impl::IsMember(pid_t pid) const {
  const std::vector<ProcessInfo> members = tree->Members();
  return std::any_of(members.begin(), members.end(),
                     [pid](const ProcessInfo& process) { return process.pid == pid; });
}

void NodeAgent::Impl::OnFileTimer(const ExpiredFileTimer& expired) {
  LogError("the timer '{}' of pid {} expired: sending {}", expired.scope_id, expired.pid,
           SignalName(expired.signal));
  for (const ProcessInfo& process : tree->Members()) {
    if (process.pid == expired.pid) {
      SignalProcess(process, expired.signal);
    }
  }
}

void NodeAgent::Impl::RearmDeadline() {
  const std::optional<TimePoint> next = machine.NextDeadline();
  deadline.cancel();
  if (!next || finished) {
    return;
  }
  deadline.expires_at(std::chrono::time_point_cast<asio::steady_timer::duration>(*next));
  deadline.async_wait([this](const asio::error_code& error) {
    if (!error) {
      Feed(group_event::Tick{});
    }
  });
}

// Everything that must be gone before the launcher is, in the order in which it may go.
void NodeAgent::Impl::Close() {
  uninterruptible.reset();
  file_timer.reset();
  if (logs_directory) {
    logs_directory->RemoveIfUnneeded();
    const bool kept = ::access(logs_directory->run_directory().c_str(), F_OK) == 0;
    result.log_directory = kept ? logs_directory->run_directory() : std::string();
  }
  group.reset();
  pump.reset();
  if (guardian) {
    guardian->Goodbye();
    tree->HelperReaped(guardian->pid());
  }
}

NodeAgent::NodeAgent(NodeAgentOptions options, StartSignals start_signals,
                     RendezvousHandler& rendezvous, std::shared_ptr<ConsoleWriter> console,
                     NodeAgentObserver observer)
    : impl_(std::make_unique<Impl>(std::move(options), start_signals, rendezvous,
                                   std::move(console), std::move(observer))) {}

NodeAgent::~NodeAgent() = default;

Expected<NodeAgentResult> NodeAgent::Run() {
  Impl& agent = *impl_;
  ::signal(SIGPIPE, SIG_IGN);  // In the agent only; the spawner gives workers the default back.
  agent.started_at = MonotonicNow();
  if (Expected<void> ready = agent.SetUp(); !ready) {
    agent.Close();
    return tl::unexpected<Error>(ready.error());
  }
  agent.Feed(group_event::Begin{});
  agent.io.run();
  DDP_CHECK(agent.finished);
  agent.Close();
  agent.result.ran_for = MonotonicNow() - agent.started_at;
  return std::move(agent.result);
}

void NodeAgent::DieBySignal(int signal) {
  impl_->signals->RaiseWithDefault(signal);
  ::_exit(128 + signal);  // PID 1 does not die of a signal's default disposition.
}

}  // namespace ddprun
