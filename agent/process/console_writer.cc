#include "agent/process/console_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "agent/process/log_thread.h"

namespace ddprun {
namespace {

// A write(2) that sits with a slow reader should still return now and then, since its return is how
// progress is seen; with a fast one it should be large.
constexpr std::size_t kSmallWrite = std::size_t{4} << 10;
constexpr std::size_t kLargeWrite = std::size_t{256} << 10;
constexpr Duration kSlowWrite = std::chrono::milliseconds(100);
constexpr Duration kFastWrite = std::chrono::milliseconds(10);
constexpr int kNonBlockingPollMs = 100;

UniqueFd Duplicate(int standard_fd) {
  return UniqueFd(::fcntl(standard_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

bool SameFile(const UniqueFd& first, const UniqueFd& second) {
  struct stat a {};
  struct stat b {};
  return ::fstat(first.get(), &a) == 0 && ::fstat(second.get(), &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

// At most `size` bytes from the front, up to the last line end in there if there is one: another
// process that writes to the same pipe then finds no line of ours open.
std::string_view Piece(std::string_view rest, std::size_t size) {
  if (rest.size() <= size) {
    return rest;
  }
  const std::size_t line_end = rest.rfind('\n', size - 1);
  return rest.substr(0, line_end == std::string_view::npos ? size : line_end + 1);
}

}  // namespace

// One open file: its buffer and its thread, which keeps it alive.
class ConsoleWriter::Channel : public std::enable_shared_from_this<Channel> {
 public:
  explicit Channel(UniqueFd fd) : fd_(std::move(fd)), broken_(!fd_) {}

  bool Push(std::string chunk, std::size_t limit);
  bool IsFull() const;
  bool IsStalled(TimePoint now) const;
  bool IsBroken() const;
  void SetRoomCallback(std::function<void()> on_room);
  bool WaitUntilEmpty(Duration patience, TimePoint deadline);
  void Stop();

 private:
  using Lock = std::unique_lock<std::mutex>;

  void Enqueue(std::string chunk);
  void AddDropNotice();
  void Run();
  bool WriteChunk(std::string_view chunk);
  // The bytes that were written, 0 to try again, or nullopt if there is no sense in that.
  std::optional<std::size_t> WriteOnce(std::string_view piece) const;
  bool NoteProgress(std::size_t written);
  void Break();
  void CallRoomCallback();

  const UniqueFd fd_;
  std::size_t write_size_ = kLargeWrite;  // The thread's own.

  mutable std::mutex mutex_;  // Guards what follows.
  std::condition_variable work_;
  std::condition_variable progress_;
  std::deque<std::string> queue_;
  std::size_t waiting_ = 0;  // Bytes in queue_ and of the chunk that is being written.
  std::uint64_t dropped_lines_ = 0;
  TimePoint last_progress_{};
  bool was_full_ = false;  // Somebody may wait for room.
  bool broken_ = false;
  bool stop_ = false;
  bool writing_ = false;
  std::thread thread_;

  std::mutex room_mutex_;  // Guards on_room_, and is held while it runs.
  std::function<void()> on_room_;
};

bool ConsoleWriter::Channel::Push(std::string chunk, std::size_t limit) {
  const Lock lock(mutex_);
  if (broken_ || chunk.empty()) {
    return !broken_;
  }
  if (waiting_ >= limit) {
    dropped_lines_ += static_cast<std::uint64_t>(std::count(chunk.begin(), chunk.end(), '\n'));
    was_full_ = true;
    return false;
  }
  AddDropNotice();
  Enqueue(std::move(chunk));
  was_full_ = was_full_ || waiting_ >= kLimit;
  return true;
}

void ConsoleWriter::Channel::Enqueue(std::string chunk) {
  if (waiting_ == 0) {
    last_progress_ = MonotonicNow();
  }
  waiting_ += chunk.size();
  queue_.push_back(std::move(chunk));
  if (!thread_.joinable()) {
    thread_ = StartLogThread("ddprun-console", [self = shared_from_this()] { self->Run(); });
  }
  work_.notify_one();
}

void ConsoleWriter::Channel::AddDropNotice() {
  if (dropped_lines_ != 0) {
    const std::uint64_t lines = std::exchange(dropped_lines_, 0);
    Enqueue(fmt::format("ddprun: {} line{} dropped, console reader too slow\n", lines,
                        lines == 1 ? "" : "s"));
  }
}

bool ConsoleWriter::Channel::IsFull() const {
  const Lock lock(mutex_);
  return waiting_ >= kLimit;
}

bool ConsoleWriter::Channel::IsStalled(TimePoint now) const {
  const Lock lock(mutex_);
  return waiting_ != 0 && now - last_progress_ >= kPatience;
}

bool ConsoleWriter::Channel::IsBroken() const {
  const Lock lock(mutex_);
  return broken_;
}

void ConsoleWriter::Channel::SetRoomCallback(std::function<void()> on_room) {
  const Lock lock(room_mutex_);
  on_room_ = std::move(on_room);
}

void ConsoleWriter::Channel::CallRoomCallback() {
  const Lock lock(room_mutex_);
  if (on_room_) {
    on_room_();
  }
}

bool ConsoleWriter::Channel::WaitUntilEmpty(Duration patience, TimePoint deadline) {
  Lock lock(mutex_);
  TimePoint seen = MonotonicNow();  // Of the last progress that counts for this wait.
  while (!broken_ && (waiting_ != 0 || dropped_lines_ != 0)) {
    seen = std::max(seen, last_progress_);
    const TimePoint until = std::min(deadline, seen + patience);
    if (MonotonicNow() >= until) {
      return false;
    }
    progress_.wait_until(lock, until);
  }
  return true;
}

// The thread is left alone if it is in a write(2): nothing can end that but the reader.
void ConsoleWriter::Channel::Stop() {
  Lock lock(mutex_);
  stop_ = true;
  work_.notify_one();
  if (!thread_.joinable()) {
    return;
  }
  if (writing_) {
    thread_.detach();
    return;
  }
  lock.unlock();
  thread_.join();
}

void ConsoleWriter::Channel::Run() {
  Lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (stop_) {
      return;
    }
    const std::string chunk = std::move(queue_.front());
    queue_.pop_front();
    writing_ = true;
    lock.unlock();
    const bool written = WriteChunk(chunk);
    if (!written) {
      Break();
    }
    lock.lock();
    writing_ = false;
    if (queue_.empty() && !broken_) {
      AddDropNotice();
    }
  }
}

bool ConsoleWriter::Channel::WriteChunk(std::string_view chunk) {
  while (!chunk.empty()) {
    const TimePoint start = MonotonicNow();
    const std::optional<std::size_t> written = WriteOnce(Piece(chunk, write_size_));
    if (!written) {
      return false;
    }
    chunk.remove_prefix(*written);
    const Duration took = MonotonicNow() - start;
    if (took >= kSlowWrite) {
      write_size_ = kSmallWrite;
    } else if (took <= kFastWrite) {
      write_size_ = std::min(write_size_ * 2, kLargeWrite);
    }
    if (*written != 0 && NoteProgress(*written)) {
      CallRoomCallback();
    }
  }
  return true;
}

std::optional<std::size_t> ConsoleWriter::Channel::WriteOnce(std::string_view piece) const {
  const ssize_t written = ::write(fd_.get(), piece.data(), piece.size());
  if (written >= 0) {
    return static_cast<std::size_t>(written);
  }
  const int err = errno;
  if (err == EINTR) {
    return 0;
  }
  if (err != EAGAIN) {
    return std::nullopt;
  }
  // Somebody else has made the shared open file non-blocking.
  pollfd room{fd_.get(), POLLOUT, 0};
  ::poll(&room, 1, kNonBlockingPollMs);
  const Lock lock(mutex_);
  return stop_ ? std::nullopt : std::optional<std::size_t>(0);
}

// True if somebody who waits for room should be told.
bool ConsoleWriter::Channel::NoteProgress(std::size_t written) {
  const Lock lock(mutex_);
  waiting_ -= written;
  last_progress_ = MonotonicNow();
  progress_.notify_all();
  return was_full_ && waiting_ <= kLimit / 2 && std::exchange(was_full_, false);
}

void ConsoleWriter::Channel::Break() {
  {
    const Lock lock(mutex_);
    broken_ = true;
    queue_.clear();
    waiting_ = 0;
    dropped_lines_ = 0;
    progress_.notify_all();
  }
  CallRoomCallback();
}

ConsoleWriter::ConsoleWriter()
    : ConsoleWriter(Duplicate(STDOUT_FILENO), Duplicate(STDERR_FILENO)) {}

ConsoleWriter::ConsoleWriter(UniqueFd out, UniqueFd err) {
  const bool one = SameFile(out, err);
  out_ = std::make_shared<Channel>(std::move(out));
  err_ = one ? out_ : std::make_shared<Channel>(std::move(err));
}

ConsoleWriter::~ConsoleWriter() {
  SetRoomCallback(nullptr);
  out_->Stop();
  if (!streams_are_one()) {
    err_->Stop();
  }
}

bool ConsoleWriter::Write(StdStream stream, std::string chunk) {
  return Of(stream).Push(std::move(chunk), kLimit);
}

bool ConsoleWriter::WriteOwn(StdStream stream, std::string chunk) {
  return Of(stream).Push(std::move(chunk), kLimit + kReserve);
}

bool ConsoleWriter::IsFull(StdStream stream) const {
  return Of(stream).IsFull();
}

bool ConsoleWriter::IsStalled(StdStream stream, TimePoint now) const {
  return Of(stream).IsStalled(now);
}

bool ConsoleWriter::IsBroken(StdStream stream) const {
  return Of(stream).IsBroken();
}

bool ConsoleWriter::streams_are_one() const {
  return out_ == err_;
}

void ConsoleWriter::SetRoomCallback(std::function<void()> on_room) {
  out_->SetRoomCallback(on_room);
  err_->SetRoomCallback(std::move(on_room));
}

bool ConsoleWriter::Flush(Duration patience, Duration limit) {
  const TimePoint deadline = MonotonicNow() + limit;
  const bool out = out_->WaitUntilEmpty(patience, deadline);
  return err_->WaitUntilEmpty(patience, deadline) && out;
}

ConsoleWriter::Channel& ConsoleWriter::Of(StdStream stream) const {
  return stream == StdStream::kOut ? *out_ : *err_;
}

}  // namespace ddprun
