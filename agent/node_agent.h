#pragma once

// NodeAgent: the agent of one node (torch: LocalElasticAgent). Glue only: it owns the event loop,
// the processes, the store and the log files; what happens goes as events into WorkerGroupMachine,
// whose actions it carries out. Everything here runs on the main thread.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/logs_specs.h"
#include "agent/core/process_failure.h"
#include "agent/core/run_result.h"
#include "agent/core/worker_blueprint.h"
#include "agent/core/worker_group_machine.h"
#include "agent/process/console_writer.h"
#include "agent/process/start_signals.h"
#include "agent/round_store.h"
#include "agent/signal_watch.h"
#include "rendezvous/base/clock.h"
#include "rendezvous/base/error.h"
#include "rendezvous/client/rendezvous_handler.h"

namespace ddprun {

struct NodeAgentOptions {
  std::string job_id;  // Marks every process of the job; unique on this machine.
  std::string role = "default";
  std::uint32_t max_restarts = 0;
  Duration shutdown_timeout = std::chrono::seconds(30);
  Duration kill_timeout = std::chrono::seconds(5);
  WorkerBlueprint blueprint;
  LogsSpecs logs;
  RoundStoreSettings store;
  std::vector<int>
      handled_signals;  // --signals-to-handle: each ends the job, forwarded to the workers.
  Duration monitor_interval = std::chrono::milliseconds(100);  // Paces the check below only.
  std::optional<Duration> uninterruptible_limit;  // TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT
  std::string timer_file;  // Where to serve torch's file timer; empty: not enabled.
};

// What an observer may want to know while the job runs; all called on the loop.
struct NodeAgentObserver {
  // The round is known, and how long that took.
  std::function<void(const RendezvousInfo&, Duration)> on_rendezvous;
  std::function<void(std::uint32_t local_rank, pid_t)> on_worker_started;
  // An attempt ended badly and another one follows. The failures are by local rank.
  std::function<void(const std::vector<ProcessFailure>&)> on_attempt_failed;
};

// How a job ended, for the report.
struct NodeAgentResult {
  RunResult run;
  std::vector<ProcessFailure> failures;  // Of the last attempt, by local rank.
  std::vector<WorkerSpec> specs;         // Of the last attempt: where each worker's output went.
  std::vector<pid_t> pids;               // By local rank; 0: never started.
  std::vector<Duration> ended_after;  // By local rank, since the stop began; negative: before it.
  RendezvousInfo round;
  ReceivedSignal signal;    // With run.signal: who sent it,
  Duration signal_after{};  // and how long after the start.
  Duration ran_for{};
  std::vector<std::string> leftovers;  // With run.leftovers: one description each.
  std::string log_directory;           // The run's folder; empty when there is none.
};

class NodeAgent {
 public:
  NodeAgent(NodeAgentOptions options, StartSignals start_signals, RendezvousHandler& rendezvous,
            std::shared_ptr<ConsoleWriter> console, NodeAgentObserver observer = {});
  NodeAgent(const NodeAgent&) = delete;
  NodeAgent& operator=(const NodeAgent&) = delete;
  ~NodeAgent();

  // Runs the job to its end. Fails when the agent itself cannot be set up: nothing was started
  // then.
  Expected<NodeAgentResult> Run();

  // After Run: dies of `signal` with its default disposition, as if it had not been handled.
  [[noreturn]] void DieBySignal(int signal);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ddprun
