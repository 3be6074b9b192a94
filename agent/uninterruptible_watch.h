#pragma once

// UninterruptibleWatch: looks for workers that have been in uninterruptible sleep (state D) for too
// long (TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT, torch 2.12 and newer). Such a process cannot be
// killed, so the job had better end. Owned by NodeAgent, main thread.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/base/clock.h"

namespace asio {
class io_context;
}  // namespace asio

namespace ddprun {

class UninterruptibleWatch {
 public:
  // The pids of the workers by local rank; 0 for one that does not run.
  using RunningWorkers = std::function<std::vector<pid_t>()>;
  using Callback = std::function<void(std::uint32_t local_rank, std::string reason)>;

  // Looks every `interval`; the callback comes once for each worker that was seen in state D for
  // `limit` without a break.
  UninterruptibleWatch(asio::io_context& io, Duration interval, Duration limit,
                       RunningWorkers workers, Callback callback);
  UninterruptibleWatch(const UninterruptibleWatch&) = delete;
  UninterruptibleWatch& operator=(const UninterruptibleWatch&) = delete;
  ~UninterruptibleWatch();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ddprun
