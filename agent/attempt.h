#pragma once

// Attempt: what NodeAgent keeps about one start of the group: the workers' specs, when each of them
// ended, and from that, once they are gone, what is known of each failure.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/process_failure.h"
#include "agent/core/run_result.h"
#include "agent/core/worker_spec.h"
#include "rendezvous/base/clock.h"

namespace ddprun {

class Attempt {
 public:
  Attempt() = default;
  explicit Attempt(std::vector<WorkerSpec> specs)
      : specs_(std::move(specs)), exits_(specs_.size()) {}

  const std::vector<WorkerSpec>& specs() const { return specs_; }

  // The group began to stop now; the first call counts.
  void NoteStop();
  void NoteExit(std::uint32_t local_rank);

  // How long after the beginning of the stop a worker ended; negative: before it, or not at all.
  Duration ended_after_stop(std::uint32_t local_rank) const {
    return exits_[local_rank].after_stop;
  }

  // Reads the error files. In torch's order: workers that ended by themselves, then those that were
  // stopped, each by local rank. `pids` is by local rank. An error file that cannot be used costs a
  // warning in the log, never the rest.
  std::vector<ProcessFailure> FailuresOf(const std::vector<WorkerOutcome>& outcomes,
                                         const std::vector<pid_t>& pids) const;

 private:
  struct ExitMoment {
    std::int64_t unix_ms = 0;
    Duration after_stop{-1};
  };

  std::vector<WorkerSpec> specs_;
  std::vector<ExitMoment> exits_;  // By local rank.
  std::optional<TimePoint> stop_began_;
};

}  // namespace ddprun
