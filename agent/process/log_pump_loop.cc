#include "agent/process/log_pump_loop.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ddprun {
namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds(100);

}  // namespace

void LogPump::Loop::WaitReadable(const SourcePtr& source) {
  if (source->waiting || !source->pipe.is_open()) {
    return;
  }
  source->waiting = true;
  source->pipe.async_wait(asio::posix::stream_descriptor::wait_read,
                          [this, source](const asio::error_code& error) {
                            source->waiting = false;
                            if (!error) {
                              OnReadable(source);
                            }
                          });
}

void LogPump::Loop::OnReadable(const SourcePtr& source) {
  if (IsPaused(*source)) {
    return;  // ResumeWhereRoom() comes back to it.
  }
  if (draining()) {
    DrainSource(source);
    FinishDrainIfDone();
    return;
  }
  if (ReadOnce(*source) == ReadResult::kEnd) {
    Close(source);
  } else {
    Continue(source);
  }
}

void LogPump::Loop::Continue(const SourcePtr& source) {
  if (!IsPaused(*source)) {
    WaitReadable(source);
  }
}

LogPump::Loop::ReadResult LogPump::Loop::ReadOnce(LogSource& source) {
  const ssize_t got = ::read(source.pipe.native_handle(), buffer_.get(), source.read_size);
  if (got > 0) {
    Take(source, {buffer_.get(), static_cast<std::size_t>(got)});
    return ReadResult::kBytes;
  }
  const bool empty = got < 0 && (errno == EAGAIN || errno == EINTR);
  return empty ? ReadResult::kEmpty : ReadResult::kEnd;
}

void LogPump::Loop::Take(LogSource& source, std::string_view bytes) {
  source.drain_bytes += bytes.size();
  WriteTo(source.file, source.local_rank, bytes);
  output_.want_console = !console_->IsBroken(source.stream);
  source.lines.Feed(bytes, MonotonicNow(), output_);
  Deliver(source);
  ArmLineTimer(source.lines.deadline());
}

void LogPump::Loop::Close(const SourcePtr& source) {
  FinishLines(*source);
  asio::error_code ignored;
  source->pipe.close(ignored);
  sources_.erase(std::remove(sources_.begin(), sources_.end(), source), sources_.end());
}

// What the assembler has made goes to the console and to the filter file.
void LogPump::Loop::Deliver(LogSource& source) {
  if (!output_.filtered.empty()) {
    WriteTo(*source.filter_file, source.local_rank, output_.filtered);
    output_.filtered.clear();
  }
  if (!output_.console.empty()) {
    console_->Write(source.stream, std::exchange(output_.console, std::string()));
    PauseIfFull(source.stream);
  }
}

void LogPump::Loop::WriteTo(LogFile& file, std::uint32_t local_rank, std::string_view bytes) {
  const std::string failure = file.Write(bytes);
  if (failure.empty()) {
    return;
  }
  const std::lock_guard<std::mutex> lock(end_mutex_);
  if (!silent_) {
    on_warning_(fmt::format("worker {}: {}", local_rank, failure));
  }
}

// One timer for all streams, at the earliest time at which one of them has something to show. It
// may go off early: deadlines only move back.
void LogPump::Loop::ArmLineTimer(std::optional<TimePoint> deadline) {
  if (!deadline || (line_timer_at_ && *line_timer_at_ <= *deadline)) {
    return;
  }
  line_timer_at_ = deadline;
  line_timer_.expires_at(*deadline);
  line_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) {
      OnLineTimer();
    }
  });
}

void LogPump::Loop::OnLineTimer() {
  line_timer_at_.reset();
  const TimePoint now = MonotonicNow();
  for (const SourcePtr& source : sources_) {
    if (!IsPaused(*source)) {
      output_.want_console = !console_->IsBroken(source->stream);
      source->lines.Tick(now, output_);
      Deliver(*source);
    }
  }
  for (const SourcePtr& source : sources_) {
    const std::optional<TimePoint> deadline = source->lines.deadline();
    ArmLineTimer(deadline && IsPaused(*source) ? std::max(*deadline, now + kLookAgain) : deadline);
  }
}

std::size_t LogPump::Loop::BufferOf(StdStream stream) const {
  return console_->streams_are_one() ? 0 : static_cast<std::size_t>(stream);
}

bool LogPump::Loop::IsPaused(const LogSource& source) const {
  return paused_.at(BufferOf(source.stream));
}

void LogPump::Loop::PauseIfFull(StdStream stream) {
  if (patience_over_ || !console_->IsFull(stream) || console_->IsStalled(stream, MonotonicNow())) {
    return;
  }
  paused_.at(BufferOf(stream)) = true;
  ArmStallTimer();
}

void LogPump::Loop::ArmStallTimer() {
  stall_timer_.expires_after(kLookAgain);
  stall_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) {
      ResumeWhereRoom();
    }
  });
}

void LogPump::Loop::ResumeWhereRoom() {
  const TimePoint now = MonotonicNow();
  for (const StdStream stream : {StdStream::kOut, StdStream::kErr}) {
    const bool wait =
        !patience_over_ && console_->IsFull(stream) && !console_->IsStalled(stream, now);
    if (BufferOf(stream) == static_cast<std::size_t>(stream)) {
      paused_.at(BufferOf(stream)) = paused_.at(BufferOf(stream)) && wait;
    }
  }
  ResumeAll();
  if (paused_[0] || paused_[1]) {
    ArmStallTimer();
  }
}

// Goes on with the streams that need not wait. Harmless for those that never stopped.
void LogPump::Loop::ResumeAll() {
  const std::vector<SourcePtr> sources = sources_;  // DrainSource() may close some.
  for (const SourcePtr& source : sources) {
    if (draining()) {
      DrainSource(source);
    } else {
      Continue(source);
    }
  }
  FinishDrainIfDone();
}

void LogPump::Loop::StartDrain(const LogDrainLimits& limits, std::function<void()> done) {
  drain_done_.push_back(std::move(done));
  ++drain_;
  quiet_over_ = false;
  patience_over_ = false;
  for (const SourcePtr& source : sources_) {
    source->drained = false;
    source->drain_bytes = 0;
  }
  ArmDrainTimer(quiet_timer_, limits.quiet, &quiet_over_);
  ArmDrainTimer(console_timer_, limits.console, &patience_over_);
  ResumeAll();
}

void LogPump::Loop::ArmDrainTimer(asio::steady_timer& timer, Duration after, bool* over) {
  timer.expires_after(after);
  timer.async_wait([this, over, drain = drain_](const asio::error_code& error) {
    if (!error && drain == drain_) {
      *over = true;
      ResumeWhereRoom();
    }
  });
}

// Reads what is there; the top of the header says when that is enough.
void LogPump::Loop::DrainSource(const SourcePtr& source) {
  while (source->pipe.is_open() && !IsPaused(*source)) {
    const ReadResult result = ReadOnce(*source);
    if (result == ReadResult::kEnd) {
      Close(source);
      return;
    }
    const bool empty = result == ReadResult::kEmpty;
    const bool all_read = source->drain_bytes >= source->pipe_size;
    if (all_read || (empty && (quiet_over_ || source->survivor))) {
      MarkDrained(*source);
    }
    if (all_read || empty) {
      WaitReadable(source);
      return;
    }
  }
}

void LogPump::Loop::MarkDrained(LogSource& source) {
  if (!source.drained) {
    source.drained = true;
    source.survivor = true;
    FinishLines(source);
  }
}

void LogPump::Loop::FinishLines(LogSource& source) {
  output_.want_console = !console_->IsBroken(source.stream);
  source.lines.Finish(output_);
  Deliver(source);
}

void LogPump::Loop::FinishDrainIfDone() {
  const bool done = draining() && std::all_of(sources_.begin(), sources_.end(),
                                              [](const auto& source) { return source->drained; });
  if (!done) {
    return;
  }
  ++drain_;
  quiet_timer_.cancel();
  console_timer_.cancel();
  patience_over_ = false;
  const std::vector<std::function<void()>> callbacks = std::exchange(drain_done_, {});
  const std::lock_guard<std::mutex> lock(end_mutex_);
  for (const auto& callback : callbacks) {
    if (!silent_) {
      callback();
    }
  }
}

}  // namespace ddprun
