#pragma once

// Runs the program print_devices in front of the fake NVML and gives back what it printed.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "agent/process/unique_fd.h"
#include "rendezvous/base/text.h"
#include "tests/unit/gpu/temporary_folder.h"

namespace ddprun {

struct FakeMachine {
  std::string library = "fake_nvml";  // Folder of the library in the build; empty: none.
  std::string description = "";       // The text that fake_nvml.cc reads.
  std::vector<std::string> arguments = {};
  std::vector<std::string> environment = {};
};

// print_devices at work. Ends with its owner.
class PrintDevices {
 public:
  explicit PrintDevices(const FakeMachine& machine) {
    const std::string build = std::string(DDPRUN_TEST_BIN) + "/..";
    std::vector<std::string> environment = machine.environment;
    environment.push_back("DDPRUN_FAKE_NVML=" + folder_.Write("machine", machine.description));
    environment.push_back("ASAN_OPTIONS=detect_leaks=0");
    if (!machine.library.empty()) {
      environment.push_back("LD_LIBRARY_PATH=" + (machine.library[0] == '/'
                                                      ? machine.library
                                                      : build + "/" + machine.library));
    }
    std::vector<std::string> arguments = {std::string(DDPRUN_TEST_BIN) + "/print_devices",
                                          "--root=" + folder_.path()};
    arguments.insert(arguments.end(), machine.arguments.begin(), machine.arguments.end());
    Spawn(arguments, environment);
  }
  PrintDevices(const PrintDevices&) = delete;
  PrintDevices& operator=(const PrintDevices&) = delete;
  ~PrintDevices() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  pid_t pid() const { return pid_; }

  // Everything it prints until it ends, at most 10 s; nothing after that.
  std::string Output() {
    std::string output;
    std::array<char, 4096> buffer{};
    pollfd poll{out_.get(), POLLIN, 0};
    while (::poll(&poll, 1, 10000) > 0) {
      const ssize_t got = ::read(out_.get(), buffer.data(), buffer.size());
      if (got <= 0) {
        return output;
      }
      output.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return "";
  }

  // The status of its end, as waitpid(2) gives it.
  int Wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

 private:
  static std::vector<char*> Pointers(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) {
      pointers.push_back(text.data());
    }
    pointers.push_back(nullptr);
    return pointers;
  }

  void Spawn(std::vector<std::string>& arguments, std::vector<std::string>& environment) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      return;
    }
    out_ = UniqueFd(ends[0]);
    const UniqueFd write_end(ends[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
    ::posix_spawn(&pid_, arguments[0].c_str(), &actions, nullptr, Pointers(arguments).data(),
                  Pointers(environment).data());
    ::posix_spawn_file_actions_destroy(&actions);
  }

  TemporaryFolder folder_;
  UniqueFd out_;
  pid_t pid_ = -1;
};

inline std::vector<std::string> LinesOf(const FakeMachine& machine) {
  PrintDevices program(machine);
  return Split(program.Output(), '\n');
}

// Waits, at most 10 s, until `condition` holds.
template <typename Condition>
bool Eventually(const Condition& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// The children of a process whose main thread made them, from /proc.
inline std::vector<pid_t> ChildrenOf(pid_t pid) {
  const std::string self = std::to_string(pid);
  std::ifstream file("/proc/" + self + "/task/" + self + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) {
    children.push_back(child);
  }
  return children;
}

// Whether the process still runs: one that waits for its reaper does not.
inline bool IsRunning(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat.compare(name_end + 2, 1, "Z") != 0;
}

}  // namespace ddprun
