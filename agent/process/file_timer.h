#pragma once

// The server side of torch's file timer (torch.distributed.elastic.timer, FileTimerServer;
// torch 1.13 to 2.15, spec section 7.5). A worker asks for a deadline by writing one JSON line to a
// FIFO; when the deadline passes without a release, the worker is to be killed. torch 2.15's server
// then kills itself as well; ours only reports the worker and lives on.
//
// FileTimerLines and FileTimerTable are pure. FileTimerServer owns the FIFO.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/base/error.h"

namespace asio {
class io_context;
}

namespace ddprun {

// One line of a client.
struct FileTimerRequest {
  pid_t pid = 0;  // As the worker sees itself.
  std::string scope_id;
  double expiration_time = 0;  // Unix seconds; negative: the timer is released.
  int signal = 0;              // 0 or less: report nothing when it expires.
};

// Keys pid, scope_id, expiration_time and signal (left out: SIGKILL, the client's default); others
// are ignored. nullopt for anything that no client writes: no JSON object, a pid that is none, a
// signal above 64, a time that is not finite.
std::optional<FileTimerRequest> ParseFileTimerLine(std::string_view line);

// Cuts the bytes of the FIFO into lines. A write of up to PIPE_BUF bytes arrives in one piece, so
// lines of several workers never mix; what is longer is no request and is thrown away up to its
// end.
class FileTimerLines {
 public:
  // PIPE_BUF without the line's end, which torch's client writes on top of it.
  static constexpr std::size_t kMaxLine = 4096;

  // The lines that these bytes complete, without their ends; empty ones are left out.
  std::vector<std::string> Add(std::string_view bytes);
  std::uint64_t overlong() const { return overlong_; }

 private:
  void TakePiece(std::string_view piece);

  std::string pending_;
  bool skipping_ = false;  // In a line that is too long.
  std::uint64_t overlong_ = 0;
};

struct ExpiredFileTimer {
  pid_t pid = 0;
  int signal = 0;  // Above 0.
  std::string scope_id;
  double expiration_time = 0;
};

// The pending timers of all workers, by process and scope.
class FileTimerTable {
 public:
  // torch needs one per nested `with expires()` of a process.
  static constexpr std::size_t kMaxTimers = 4096;

  // Sets, moves or releases a timer. False: the table is full and the request is dropped.
  bool Apply(FileTimerRequest request);

  // The processes with expired timers, each with the earliest one that has a signal. All timers of
  // such a process are gone afterwards, as in torch; one whose expired timers have no signal is not
  // reported.
  std::vector<ExpiredFileTimer> TakeExpired(double unix_now);

  // Drops the timers of processes that are no longer ours.
  void Keep(const std::function<bool(pid_t)>& is_ours);

  bool empty() const { return timers_.empty(); }
  std::size_t size() const { return timers_.size(); }

 private:
  struct Timer {
    double expiration_time = 0;
    int signal = 0;
  };

  std::map<std::pair<pid_t, std::string>, Timer> timers_;
};

// Owns the FIFO. All callbacks come from the io_context's thread, which is the only one that may
// use this object. Destroying it is Stop().
class FileTimerServer {
 public:
  struct Callbacks {
    // Whether a process is (still) a worker of ours or below one. Requests of others are refused.
    std::function<bool(pid_t)> is_ours;
    // The process to kill, by the caller, who knows how to do that without hitting a reused pid.
    // May destroy the server.
    std::function<void(const ExpiredFileTimer&)> on_expired;
  };

  struct Counters {
    std::uint64_t requests = 0;  // Understood and accepted.
    std::uint64_t bad = 0;       // Lines that are no request, overlong ones included.
    std::uint64_t refused = 0;   // Of processes that are not ours, or beyond the table's limit.
  };

  // How often deadlines are checked while any timer is pending; there is no wake-up otherwise.
  static constexpr int kCheckIntervalMs = 100;

  // Removes what is at `path`, makes the FIFO there (mode 0666 minus umask) and begins to read it.
  // Errors name the path.
  static Expected<std::unique_ptr<FileTimerServer>> Start(asio::io_context& io, std::string path,
                                                          Callbacks callbacks);
  FileTimerServer(const FileTimerServer&) = delete;
  FileTimerServer& operator=(const FileTimerServer&) = delete;
  ~FileTimerServer();

  // Closes and removes the FIFO, unless somebody put another file in its place. No callback comes
  // afterwards. Start() makes it anew.
  void Stop();

  Counters counters() const;
  const std::string& path() const;

 private:
  class Impl;

  explicit FileTimerServer(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun
