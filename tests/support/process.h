#pragma once

// What the process tests share: start the scripted worker, read its lines, and prove that nothing
// is left. The test program makes itself the subreaper of all it starts, so "no child left" means
// no process left.

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/process/spawner.h"
#include "agent/process/unique_fd.h"
#include "tests/support/catch.h"

namespace ddprun::test {

constexpr std::chrono::seconds kSafetyNet{10};

inline const std::string kWorkerProgram = DDPRUN_TEST_BIN "/ddprun_test_worker";
inline const std::string kLauncherProgram = DDPRUN_TEST_BIN "/ddprun_test_launcher";

// A pipe whose lines a test reads with a time limit.
class LinePipe {
 public:
  LinePipe() {
    std::array<int, 2> ends = {-1, -1};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    read_end_.Reset(ends[0]);
    write_end_.Reset(ends[1]);
  }

  const UniqueFd& write_end() const { return write_end_; }
  void CloseWriteEnd() { write_end_.Reset(); }

  // The next line without its line feed; "<end>" at the end, "<timeout>" after the safety net.
  std::string ReadLine() {
    for (;;) {
      if (const std::size_t end = text_.find('\n'); end != std::string::npos) {
        std::string line = text_.substr(0, end);
        text_.erase(0, end + 1);
        return line;
      }
      const int size = ReadSome();
      if (size <= 0) {
        return size == 0 ? "<end>" : "<timeout>";
      }
    }
  }

  std::string ReadAll() {
    CloseWriteEnd();
    while (ReadSome() > 0) {
    }
    return std::exchange(text_, {});
  }

  pid_t ReadReadyPid() {
    const std::string line = ReadLine();
    INFO("line: " << line);
    REQUIRE(line.starts_with("ready "));
    return static_cast<pid_t>(std::atoi(line.c_str() + 6));
  }

 private:
  int ReadSome() {
    pollfd poll = {read_end_.get(), POLLIN, 0};
    constexpr int kMilliseconds = static_cast<int>(kSafetyNet.count()) * 1000;
    if (::poll(&poll, 1, kMilliseconds) != 1) {
      return -1;
    }
    std::array<char, 4096> buffer;
    const ssize_t size = ::read(read_end_.get(), buffer.data(), buffer.size());
    text_.append(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    return static_cast<int>(size);
  }

  UniqueFd read_end_;
  UniqueFd write_end_;
  std::string text_;
};

inline SpawnRequest MakeRequest(std::vector<std::string> argv, const UniqueFd* out = nullptr) {
  SpawnRequest request;
  request.name = "worker 3";
  request.argv = std::move(argv);
  request.environment = {"PATH=/usr/bin:/bin"};
  request.in = StandardStream::Null();
  request.signals = StartSignals::Capture();
  if (out != nullptr) {
    request.out = StandardStream::To(*out);
  }
  return request;
}

// The scripted worker with its steps.
inline SpawnRequest MakeWorker(std::vector<std::string> steps, const UniqueFd* out = nullptr) {
  steps.insert(steps.begin(), kWorkerProgram);
  return MakeRequest(std::move(steps), out);
}

inline SpawnedProcess MustSpawn(const SpawnRequest& request) {
  Expected<SpawnedProcess> process = Spawn(request);
  INFO((process ? "" : process.error().message));
  REQUIRE(process.has_value());
  return std::move(*process);
}

inline void BecomeSubreaper() {
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
}

// Reaps until no child is left; false after the safety net. Waits for SIGCHLD, not for time.
inline bool AllChildrenEnd(std::chrono::seconds limit = kSafetyNet) {
  sigset_t set;
  sigset_t before;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &set, &before);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  bool empty = false;
  while (std::chrono::steady_clock::now() < deadline) {
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (pid < 0 && errno == ECHILD) {
      empty = true;
      break;
    }
    const timespec wait = {0, 100'000'000};
    ::sigtimedwait(&set, nullptr, &wait);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return empty;
}

// A condition that another process brings about without an event for us.
template <typename Condition>
bool Eventually(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kSafetyNet;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ddprun_test_XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace ddprun::test
