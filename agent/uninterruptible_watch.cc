#include "agent/uninterruptible_watch.h"

#include <fmt/format.h>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <optional>
#include <utility>

#include "agent/process/process_table.h"
#include "rendezvous/base/log.h"

namespace ddprun {

struct UninterruptibleWatch::Impl {
  struct Sleeper {
    pid_t pid = 0;
    std::optional<TimePoint> since;
    bool reported = false;
  };

  void Schedule() {
    timer.expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(interval));
    timer.async_wait([this](const asio::error_code& error) {
      if (!error) {
        Look();
        Schedule();
      }
    });
  }

  void Look() {
    const std::vector<pid_t> pids = workers();
    sleepers.resize(pids.size());
    for (std::uint32_t local_rank = 0; local_rank < pids.size(); ++local_rank) {
      LookAt(local_rank, pids[local_rank]);
    }
  }

  void LookAt(std::uint32_t local_rank, pid_t pid) {
    Sleeper& sleeper = sleepers[local_rank];
    const auto process = pid == 0 ? std::nullopt : ReadProcess(pid);
    if (!process || process->state != 'D' || sleeper.pid != pid) {
      sleeper = Sleeper{pid, std::nullopt, false};
    }
    if (!process || process->state != 'D' || sleeper.reported) {
      return;
    }
    const TimePoint now = MonotonicNow();
    if (!sleeper.since) {
      sleeper.since = now;
      LogWarning("worker {} (pid {}) is in uninterruptible sleep", local_rank, pid);
    }
    if (now - *sleeper.since >= limit) {
      sleeper.reported = true;
      callback(local_rank,
               fmt::format("worker {} (pid {}) has been in uninterruptible sleep for {:.1f} s",
                           local_rank, pid,
                           std::chrono::duration<double>(now - *sleeper.since).count()));
    }
  }

  asio::steady_timer timer;
  Duration interval;
  Duration limit;
  RunningWorkers workers;
  Callback callback;
  std::vector<Sleeper> sleepers;
};

UninterruptibleWatch::UninterruptibleWatch(asio::io_context& io, Duration interval, Duration limit,
                                           RunningWorkers workers, Callback callback)
    : impl_(new Impl{
          asio::steady_timer(io), interval, limit, std::move(workers), std::move(callback), {}}) {
  impl_->Schedule();
}

UninterruptibleWatch::~UninterruptibleWatch() = default;

}  // namespace ddprun
