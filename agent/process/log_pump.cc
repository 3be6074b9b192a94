#include "agent/process/log_pump.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <asio/post.hpp>
#include <cerrno>

#include "agent/process/log_pump_loop.h"
#include "agent/process/log_thread.h"

namespace ddprun {
namespace {

constexpr std::size_t kPipeSize = std::size_t{1} << 20;  // What an ordinary user may ask for.
constexpr std::size_t kSmallPipeSize = std::size_t{64} << 10;
constexpr std::size_t kReadSize = std::size_t{256} << 10;
constexpr std::size_t kSmallReadSize = std::size_t{4} << 10;
// Empty lines grow by the prefix: what one read makes of them is kept below this, roughly.
constexpr std::size_t kOutputSize = std::size_t{4} << 20;
constexpr Duration kStopLimit = std::chrono::seconds(1);

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
  std::size_t size = 0;
};

Expected<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    const int err = errno;
    return Fail(err, "create a pipe for worker output");
  }
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1]), 0};
  // A large pipe lets workers run on while the disk is slow. The kernel may refuse (pipe(7):
  // pipe-max-size, pipe-user-pages-soft), or have given less than usual.
  for (const std::size_t size : {kPipeSize, kSmallPipeSize}) {
    if (::fcntl(ends[0], F_SETPIPE_SZ, size) >= 0) {
      break;
    }
  }
  pipe.size = static_cast<std::size_t>(std::max(::fcntl(ends[0], F_GETPIPE_SZ), 1));
  return pipe;
}

std::size_t ReadSizeFor(std::string_view prefix) {
  return std::clamp(kOutputSize / (prefix.size() + 1), kSmallReadSize, kReadSize);
}

std::size_t IndexOf(StdStream stream) {
  return static_cast<std::size_t>(stream);
}

}  // namespace

LogPump::LogPump(std::shared_ptr<ConsoleWriter> console,
                 std::function<void(std::string)> on_warning)
    : loop_(std::make_shared<Loop>(std::move(console), std::move(on_warning))) {
  loop_->Start();
}

LogPump::~LogPump() {
  loop_->Stop();
}

Expected<void> LogPump::OpenFilters(const LogsDest& dest, const LogsSpecs& specs) {
  return loop_->OpenFilters(dest, specs);
}

Expected<UniqueFd> LogPump::Attach(const StreamPlan& plan, StdStream stream,
                                   std::uint32_t local_rank) {
  return loop_->Attach(plan, stream, local_rank);
}

void LogPump::Drain(const LogDrainLimits& limits, std::function<void()> done) {
  loop_->Drain(limits, std::move(done));
}

LogPump::Loop::Loop(std::shared_ptr<ConsoleWriter> console,
                    std::function<void(std::string)> on_warning)
    : console_(std::move(console)),
      on_warning_(std::move(on_warning)),
      io_(1),
      work_(io_.get_executor()),
      buffer_(std::make_unique<char[]>(kReadSize)),
      line_timer_(io_),
      stall_timer_(io_),
      quiet_timer_(io_),
      console_timer_(io_) {}

void LogPump::Loop::Start() {
  console_->SetRoomCallback([weak = weak_from_this()] {
    if (const auto loop = weak.lock()) {
      asio::post(loop->io_, [raw = loop.get()] { raw->ResumeWhereRoom(); });
    }
  });
  thread_ = StartLogThread("ddprun-logs", [self = shared_from_this()] {
    self->io_.run();
    const std::lock_guard<std::mutex> lock(self->end_mutex_);
    self->ended_ = true;
    self->end_.notify_all();
  });
}

void LogPump::Loop::Stop() {
  console_->SetRoomCallback(nullptr);
  io_.stop();
  std::unique_lock<std::mutex> lock(end_mutex_);
  silent_ = true;
  const bool ended = end_.wait_for(lock, kStopLimit, [this] { return ended_; });
  lock.unlock();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();  // In a write(2) to a disk that does not answer; it keeps the loop alive.
  }
}

Expected<void> LogPump::Loop::OpenFilters(const LogsDest& dest, const LogsSpecs& specs) {
  const Expected<void> out =
      OpenFilter(StdStream::kOut, dest.filtered_stdout, specs.duplicate_stdout_filters);
  if (!out) {
    return out;
  }
  return OpenFilter(StdStream::kErr, dest.filtered_stderr, specs.duplicate_stderr_filters);
}

Expected<void> LogPump::Loop::OpenFilter(StdStream stream, const std::string& path,
                                         const std::vector<std::string>& needles) {
  Filter& filter = filters_.at(IndexOf(stream));
  filter = {};
  if (path.empty()) {
    return {};
  }
  Expected<UniqueFd> fd = CreateLogFile(path);
  if (!fd) {
    return tl::unexpected(fd.error());
  }
  filter.file = std::make_shared<LogFile>(std::move(*fd), path);
  filter.needles = needles;
  return {};
}

Expected<UniqueFd> LogPump::Loop::Attach(const StreamPlan& plan, StdStream stream,
                                         std::uint32_t local_rank) {
  Expected<UniqueFd> fd = CreateLogFile(plan.file);
  if (!fd) {
    return tl::unexpected(fd.error());
  }
  const Filter& filter = filters_.at(IndexOf(stream));
  const auto source = std::make_shared<LogSource>(io_, LogFile(std::move(*fd), plan.file),
                                                  LogLineAssembler(plan.prefix, filter.needles));
  source->filter_file = filter.file;
  source->stream = stream;
  source->local_rank = local_rank;
  source->read_size = ReadSizeFor(plan.prefix);
  Expected<UniqueFd> write_end = OpenPipe(*source);
  if (write_end) {
    asio::post(io_, [this, source] {
      sources_.push_back(source);
      Continue(source);
    });
  }
  return write_end;
}

Expected<UniqueFd> LogPump::Loop::OpenPipe(LogSource& source) {
  Expected<Pipe> pipe = MakePipe();
  if (!pipe) {
    return tl::unexpected(pipe.error());
  }
  source.pipe_size = pipe->size;
  asio::error_code error;
  source.pipe.assign(pipe->read_end.get(), error);
  if (!error) {
    pipe->read_end.Release();  // Asio's from here on.
    source.pipe.non_blocking(true, error);
  }
  if (error) {
    return Fail(error.value(), "watch a pipe for worker output");
  }
  return std::move(pipe->write_end);
}

void LogPump::Loop::Drain(const LogDrainLimits& limits, std::function<void()> done) {
  asio::post(io_, [this, limits, done = std::move(done)] { StartDrain(limits, done); });
}

}  // namespace ddprun
