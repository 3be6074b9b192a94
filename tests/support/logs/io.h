#pragma once

// Folders, files, pipes and readers for the tests of worker output.

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "agent/process/unique_fd.h"

namespace ddprun {

class TempDir {
 public:
  TempDir() {
    char name[] = "/tmp/ddprun_test_XXXXXX";
    path_ = ::mkdtemp(name);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void WriteFile(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

inline std::pair<UniqueFd, UniqueFd> TestPipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    std::abort();
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

inline UniqueFd OpenForWriting(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0600));
}

// Blocks until all is written; false if the reader is gone.
inline bool WriteAll(const UniqueFd& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd.get(), bytes.data(), bytes.size());
    if (written <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Reads a descriptor on a thread of its own, to its end or until the reader is destroyed.
class Reader {
 public:
  explicit Reader(UniqueFd fd) : fd_(std::move(fd)), thread_([this] { Run(); }) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    stop_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  // Waits until what was read satisfies the condition; false after ten seconds.
  bool WaitFor(const std::function<bool(const std::string&)>& condition) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return condition(text_); });
  }
  bool WaitForText(std::string_view part) {
    return WaitFor([part](const std::string& text) { return text.find(part) != text.npos; });
  }
  // All there was; the write ends must be closed.
  const std::string& Join() {
    thread_.join();
    return text_;
  }

 private:
  static constexpr int kLookForStopMs = 20;

  void Run() {
    std::vector<char> buffer(std::size_t{64} << 10);
    while (!stop_) {
      pollfd readable{fd_.get(), POLLIN, 0};
      if (::poll(&readable, 1, kLookForStopMs) == 0) {
        continue;
      }
      const ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
      if (got <= 0) {
        return;
      }
      const std::lock_guard<std::mutex> lock(mutex_);
      text_.append(buffer.data(), static_cast<std::size_t>(got));
      changed_.notify_all();
    }
  }

  UniqueFd fd_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// Something that happens on another thread.
class Occasion {
 public:
  void Happen() {
    const std::lock_guard<std::mutex> lock(mutex_);
    happened_ = true;
    changed_.notify_all();
  }
  bool Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [this] { return happened_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool happened_ = false;
};

}  // namespace ddprun
