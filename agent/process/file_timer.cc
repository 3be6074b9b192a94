#include "agent/process/file_timer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "agent/process/unique_fd.h"

namespace ddprun {
namespace {

static_assert(FileTimerLines::kMaxLine == PIPE_BUF, "a request is one atomic write");

constexpr std::int64_t kMaxSignal = 64;
// Read at one go before other events of the loop get their turn.
constexpr int kMaxReadsPerEvent = 16;

double UnixNow() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::optional<std::int64_t> IntegerIn(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  const bool fits = found != object.end() && found->is_number_integer() &&
                    !(found->is_number_unsigned() &&
                      found->get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max());
  return fits ? std::optional<std::int64_t>(found->get<std::int64_t>()) : std::nullopt;
}

// nullopt: the key holds no signal. A missing one is the client's default.
std::optional<int> SignalIn(const nlohmann::json& object) {
  if (!object.contains("signal")) {
    return SIGKILL;
  }
  const auto signal = IntegerIn(object, "signal");
  const bool sane = signal && *signal <= kMaxSignal;
  return sane ? std::optional<int>(static_cast<int>(std::max<std::int64_t>(*signal, 0)))
              : std::nullopt;
}

}  // namespace

std::optional<FileTimerRequest> ParseFileTimerLine(std::string_view line) {
  const auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) {
    return std::nullopt;
  }
  const auto pid = IntegerIn(object, "pid");
  const auto signal = SignalIn(object);
  const auto scope = object.find("scope_id");
  const auto time = object.find("expiration_time");
  const bool whole = pid && signal && scope != object.end() && scope->is_string() &&
                     time != object.end() && time->is_number();
  if (!whole || *pid <= 0 || *pid > std::numeric_limits<pid_t>::max()) {
    return std::nullopt;
  }
  const double expiration_time = time->get<double>();
  if (!std::isfinite(expiration_time)) {
    return std::nullopt;
  }
  return FileTimerRequest{static_cast<pid_t>(*pid), scope->get<std::string>(), expiration_time,
                          *signal};
}

std::vector<std::string> FileTimerLines::Add(std::string_view bytes) {
  std::vector<std::string> lines;
  for (std::size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    TakePiece(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
    if (!skipping_ && !pending_.empty()) {
      lines.push_back(std::move(pending_));
    }
    pending_.clear();
    skipping_ = false;
  }
  TakePiece(bytes);
  return lines;
}

void FileTimerLines::TakePiece(std::string_view piece) {
  if (skipping_) {
    return;
  }
  if (pending_.size() + piece.size() > kMaxLine) {
    pending_.clear();
    skipping_ = true;
    ++overlong_;
    return;
  }
  pending_ += piece;
}

bool FileTimerTable::Apply(FileTimerRequest request) {
  std::pair<pid_t, std::string> key(request.pid, std::move(request.scope_id));
  if (request.expiration_time < 0) {
    timers_.erase(key);
    return true;
  }
  if (timers_.size() >= kMaxTimers && timers_.count(key) == 0) {
    return false;
  }
  timers_[std::move(key)] = Timer{request.expiration_time, request.signal};
  return true;
}

std::vector<ExpiredFileTimer> FileTimerTable::TakeExpired(double unix_now) {
  // Per process with an expired timer: the one to report; signal 0 while there is none.
  std::map<pid_t, ExpiredFileTimer> earliest;
  for (const auto& [key, timer] : timers_) {
    if (timer.expiration_time > unix_now) {
      continue;
    }
    ExpiredFileTimer& best = earliest[key.first];
    const bool sooner = best.signal == 0 || timer.expiration_time < best.expiration_time;
    if (timer.signal > 0 && sooner) {
      best = ExpiredFileTimer{key.first, timer.signal, key.second, timer.expiration_time};
    }
  }
  Keep([&](pid_t pid) { return earliest.count(pid) == 0; });
  std::vector<ExpiredFileTimer> expired;
  for (auto& [pid, timer] : earliest) {
    if (timer.signal > 0) {
      expired.push_back(std::move(timer));
    }
  }
  return expired;
}

void FileTimerTable::Keep(const std::function<bool(pid_t)>& is_ours) {
  for (auto timer = timers_.begin(); timer != timers_.end();) {
    timer = is_ours(timer->first.first) ? std::next(timer) : timers_.erase(timer);
  }
}

// Shared with the handlers that Asio still holds when the server goes.
class FileTimerServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, std::string path, Callbacks callbacks)
      : path_(std::move(path)), callbacks_(std::move(callbacks)), fifo_(io), check_(io) {}

  Expected<void> Open() {
    if (::unlink(path_.c_str()) != 0 && errno != ENOENT) {
      const int error = errno;
      return Fail(error, fmt::format("remove the old timer file '{}'", path_));
    }
    if (::mkfifo(path_.c_str(), 0666) != 0) {
      const int error = errno;
      return Fail(error, fmt::format("make the timer FIFO '{}'", path_));
    }
    // Also open for writing: with a writer of our own the last client's end is no end of file.
    UniqueFd fd(::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0) {
      const int error = errno;
      return Fail(error, fmt::format("open the timer FIFO '{}'", path_));
    }
    if (!S_ISFIFO(status.st_mode)) {
      return Fail(ErrorCode::kFailedPrecondition,
                  fmt::format("timer file '{}' was replaced while it was opened", path_));
    }
    device_ = status.st_dev;
    inode_ = status.st_ino;
    fifo_.assign(fd.Release());
    return {};
  }

  void WaitForRequests() {
    fifo_.async_wait(asio::posix::descriptor_base::wait_read,
                     [self = shared_from_this()](const asio::error_code& error) {
                       if (!error && !self->stopped_) {
                         self->ReadRequests();
                       }
                     });
  }

  void Stop() {
    if (stopped_) {
      return;
    }
    stopped_ = true;
    RemoveFifo();
    asio::error_code ignored;
    fifo_.close(ignored);
    check_.cancel();
  }

  Counters counters() const {
    Counters all = counters_;
    all.bad += lines_.overlong();
    return all;
  }

  const std::string& path() const { return path_; }

 private:
  void ReadRequests() {
    std::array<char, FileTimerLines::kMaxLine> buffer{};
    for (int reads = 0; reads < kMaxReadsPerEvent; ++reads) {
      const ssize_t count = ::read(fifo_.native_handle(), buffer.data(), buffer.size());
      if (count <= 0) {
        break;  // Empty for now, or interrupted: the next wait comes back at once.
      }
      for (const std::string& line :
           lines_.Add(std::string_view(buffer.data(), static_cast<std::size_t>(count)))) {
        Take(line);
      }
    }
    WaitForRequests();
    WaitForDeadline();
  }

  void Take(const std::string& line) {
    std::optional<FileTimerRequest> request = ParseFileTimerLine(line);
    if (!request) {
      ++counters_.bad;
    } else if (callbacks_.is_ours(request->pid) && table_.Apply(std::move(*request))) {
      ++counters_.requests;
    } else {
      ++counters_.refused;
    }
  }

  void WaitForDeadline() {
    if (checking_ || table_.empty()) {
      return;
    }
    checking_ = true;
    check_.expires_after(std::chrono::milliseconds(kCheckIntervalMs));
    check_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      self->checking_ = false;
      if (!error && !self->stopped_) {
        self->CheckDeadlines();
      }
    });
  }

  // Deadlines are wall-clock times of the same host: the client computes them with time.time().
  void CheckDeadlines() {
    table_.Keep(callbacks_.is_ours);
    for (const ExpiredFileTimer& timer : table_.TakeExpired(UnixNow())) {
      if (stopped_) {
        return;
      }
      callbacks_.on_expired(timer);
    }
    if (!stopped_) {
      WaitForDeadline();
    }
  }

  void RemoveFifo() const {
    struct stat status {};
    const bool ours =
        ::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
    if (ours) {
      ::unlink(path_.c_str());
    }
  }

  std::string path_;
  Callbacks callbacks_;
  asio::posix::stream_descriptor fifo_;
  asio::steady_timer check_;
  FileTimerLines lines_;
  FileTimerTable table_;
  Counters counters_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool checking_ = false;
  bool stopped_ = false;
};

Expected<std::unique_ptr<FileTimerServer>> FileTimerServer::Start(asio::io_context& io,
                                                                  std::string path,
                                                                  Callbacks callbacks) {
  auto impl = std::make_shared<Impl>(io, std::move(path), std::move(callbacks));
  if (auto opened = impl->Open(); !opened) {
    return tl::unexpected<Error>(std::move(opened.error()));
  }
  impl->WaitForRequests();
  return std::unique_ptr<FileTimerServer>(new FileTimerServer(std::move(impl)));
}

FileTimerServer::FileTimerServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

FileTimerServer::~FileTimerServer() {
  impl_->Stop();
}

void FileTimerServer::Stop() {
  impl_->Stop();
}

FileTimerServer::Counters FileTimerServer::counters() const {
  return impl_->counters();
}

const std::string& FileTimerServer::path() const {
  return impl_->path();
}

}  // namespace ddprun
