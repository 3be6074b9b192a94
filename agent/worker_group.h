#pragma once

// WorkerGroup: the processes of one attempt. It starts a worker per spec, watches each through its
// pidfd and says how it ended. NodeAgent owns one per attempt, on the main thread.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/core/exit_status.h"
#include "agent/core/worker_spec.h"
#include "agent/process/guardian.h"
#include "agent/process/log_pump.h"
#include "agent/process/process_tree.h"
#include "agent/process/start_signals.h"
#include "rendezvous/base/error.h"

namespace asio {
class io_context;
}  // namespace asio

namespace ddprun {

// The parts of the agent that a group works with; all outlive it.
struct WorkerGroupParts {
  asio::io_context& io;
  ProcessTree& tree;
  Guardian& guardian;
  LogPump& pump;
  const StartSignals& start_signals;
};

class WorkerGroup {
 public:
  // Called on the loop, once per started worker, after it has been reaped.
  using ExitCallback = std::function<void(std::uint32_t local_rank, const ExitStatus&)>;

  WorkerGroup(std::uint32_t local_world_size, WorkerGroupParts parts, ExitCallback on_exit);
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;
  ~WorkerGroup();

  // Starts one worker: opens its log streams, spawns it, and begins to watch it.
  Expected<void> StartWorker(const WorkerSpec& spec);

  // The pid a worker has or had; 0 for one that was never started.
  pid_t pid(std::uint32_t local_rank) const;
  // The same for all, by local rank.
  std::vector<pid_t> pids() const;
  // Started and not reaped yet.
  bool running(std::uint32_t local_rank) const;
  std::size_t running_count() const;
  // By local rank; 0 for one that does not run.
  std::vector<pid_t> running_pids() const;

  // To the process group of every worker that runs (what torchrun forwards): SIGUSR1, SIGWINCH.
  void SignalWorkers(int signal);

 private:
  struct Entry;
  void Watch(Entry& entry);
  void Reap(Entry& entry);

  WorkerGroupParts parts_;
  ExitCallback on_exit_;
  std::vector<std::unique_ptr<Entry>> entries_;  // By local rank.
};

}  // namespace ddprun
