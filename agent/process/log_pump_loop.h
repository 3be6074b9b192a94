#pragma once

// LogPump::Loop: the inside of LogPump, on the pump's thread. Included by log_pump*.cc only.
//
// A stream that is read: waiting for its pipe to be readable; or *paused*, while the console buffer
// that it writes to is full and its reader moves. While a drain is asked for, each stream is in
// addition read until it is *drained*: its end was seen, or the pipe was empty and stayed so for
// the quiet time, or as much was read as the pipe can hold, so that everything written before the
// drain must have been among it.

#include <array>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "agent/process/log_file.h"
#include "agent/process/log_line_assembler.h"
#include "agent/process/log_pump.h"

namespace ddprun {

// One stream of one worker.
struct LogSource {
  LogSource(asio::io_context& io, LogFile log_file, LogLineAssembler assembler)
      : pipe(io), file(std::move(log_file)), lines(std::move(assembler)) {}

  asio::posix::stream_descriptor pipe;  // The read end.
  LogFile file;
  LogLineAssembler lines;
  std::shared_ptr<LogFile> filter_file;  // Of the attempt that it belongs to; may be null.
  StdStream stream = StdStream::kOut;
  std::uint32_t local_rank = 0;
  std::size_t read_size = 0;  // At most so much in one read(2).
  std::size_t pipe_size = 0;
  bool waiting = false;   // An async_wait is under way.
  bool drained = false;   // In the present drain.
  bool survivor = false;  // A former drain ended without the end of this stream.
  std::size_t drain_bytes = 0;
};

class LogPump::Loop : public std::enable_shared_from_this<Loop> {
 public:
  Loop(std::shared_ptr<ConsoleWriter> console, std::function<void(std::string)> on_warning);

  void Start();
  void Stop();

  // On the agent's thread.
  Expected<void> OpenFilters(const LogsDest& dest, const LogsSpecs& specs);
  Expected<UniqueFd> Attach(const StreamPlan& plan, StdStream stream, std::uint32_t local_rank);
  void Drain(const LogDrainLimits& limits, std::function<void()> done);

 private:
  using SourcePtr = std::shared_ptr<LogSource>;
  enum class ReadResult { kBytes, kEmpty, kEnd };
  static constexpr std::size_t kStreams = 2;

  struct Filter {
    std::shared_ptr<LogFile> file;
    std::vector<std::string> needles;
  };

  Expected<void> OpenFilter(StdStream stream, const std::string& path,
                            const std::vector<std::string>& needles);
  Expected<UniqueFd> OpenPipe(LogSource& source);

  void WaitReadable(const SourcePtr& source);
  void OnReadable(const SourcePtr& source);
  void Continue(const SourcePtr& source);
  ReadResult ReadOnce(LogSource& source);
  void Take(LogSource& source, std::string_view bytes);
  void Close(const SourcePtr& source);
  void Deliver(LogSource& source);
  void WriteTo(LogFile& file, std::uint32_t local_rank, std::string_view bytes);

  void ArmLineTimer(std::optional<TimePoint> deadline);
  void OnLineTimer();

  std::size_t BufferOf(StdStream stream) const;
  bool IsPaused(const LogSource& source) const;
  void PauseIfFull(StdStream stream);
  void ArmStallTimer();
  void ResumeWhereRoom();
  void ResumeAll();

  void StartDrain(const LogDrainLimits& limits, std::function<void()> done);
  bool draining() const { return !drain_done_.empty(); }
  void DrainSource(const SourcePtr& source);
  void MarkDrained(LogSource& source);
  void ArmDrainTimer(asio::steady_timer& timer, Duration after, bool* over);
  void FinishLines(LogSource& source);
  void FinishDrainIfDone();

  const std::shared_ptr<ConsoleWriter> console_;
  const std::function<void(std::string)> on_warning_;
  std::array<Filter, kStreams> filters_;  // The agent's thread only.

  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::unique_ptr<char[]> buffer_;
  LogLineOutput output_;
  std::vector<SourcePtr> sources_;
  asio::steady_timer line_timer_;
  std::optional<TimePoint> line_timer_at_;
  asio::steady_timer stall_timer_;
  std::array<bool, kStreams> paused_{};  // By console buffer.

  std::vector<std::function<void()>> drain_done_;
  asio::steady_timer quiet_timer_;
  asio::steady_timer console_timer_;
  std::uint64_t drain_ = 0;  // Counts up when one begins or ends: tells late timers apart.
  bool quiet_over_ = false;
  bool patience_over_ = false;  // Of the drain: a full console no longer stops anything.

  std::mutex end_mutex_;
  std::condition_variable end_;
  bool ended_ = false;
  bool silent_ = false;  // Guarded by end_mutex_: no callbacks into the agent any more.
  std::thread thread_;
};

}  // namespace ddprun
