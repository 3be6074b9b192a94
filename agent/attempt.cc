#include "agent/attempt.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/process/error_file.h"
#include "rendezvous/base/log.h"

namespace ddprun {

void Attempt::NoteStop() {
  if (!stop_began_) {
    stop_began_ = MonotonicNow();
  }
}

void Attempt::NoteExit(std::uint32_t local_rank) {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  exits_[local_rank].unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(wall).count();
  if (stop_began_) {
    exits_[local_rank].after_stop = MonotonicNow() - *stop_began_;
  }
}

std::vector<ProcessFailure> Attempt::FailuresOf(const std::vector<WorkerOutcome>& outcomes,
                                                const std::vector<pid_t>& pids) const {
  std::vector<ProcessFailure> failures;
  for (const WorkerOutcome& outcome : outcomes) {
    if (outcome.status.success()) {
      continue;
    }
    const WorkerSpec& spec = specs_[outcome.local_rank];
    WorkerDeath death;
    death.local_rank = spec.local_rank;
    death.global_rank = spec.global_rank;
    death.pid = pids[spec.local_rank];
    death.status = outcome.status;
    death.error_file = spec.error_file;
    death.seen_ms = exits_[spec.local_rank].unix_ms;
    death.stopped_by_agent = outcome.stopped_by_agent;
    DescribedDeath described = DescribeDeath(death);
    if (!described.warning.empty()) {
      LogWarning("{}", described.warning);
    }
    failures.push_back(std::move(described.failure));
  }
  std::sort(failures.begin(), failures.end(), [](const ProcessFailure& a, const ProcessFailure& b) {
    return std::pair(a.stopped_by_agent, a.local_rank) <
           std::pair(b.stopped_by_agent, b.local_rank);
  });
  return failures;
}

}  // namespace ddprun
