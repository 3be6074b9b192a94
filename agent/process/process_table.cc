#include "agent/process/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <memory>

#include "agent/process/unique_fd.h"

namespace ddprun {
namespace {

// More than the kernel lets an environment be with the default stack limit.
constexpr std::size_t kEnvironmentLimit = std::size_t{16} * 1024 * 1024;

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

// What a file of /proc holds; nullopt when it cannot be opened. A process that ends meanwhile ends
// the text.
std::optional<std::string> ReadProcFile(const std::string& path, std::size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return std::nullopt;
  }
  std::string text;
  std::array<char, 4096> buffer;
  while (text.size() < limit) {
    const ssize_t size = ::read(fd.get(), buffer.data(), buffer.size());
    if (size <= 0) {
      break;
    }
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  return text;
}

// The numbers that a folder of /proc has as names.
std::vector<pid_t> ListNumbers(const std::string& path) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, CloseDirectory> folder(::opendir(path.c_str()));
  if (!folder) {
    return numbers;
  }
  while (const dirent* entry = ::readdir(folder.get())) {
    if (const auto number = ParseNumber<pid_t>(entry->d_name)) {
      numbers.push_back(*number);
    }
  }
  return numbers;
}

std::string_view NextWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(" \n"));
  text.remove_prefix(word.size());
  return word;
}

// Whether this kernel has /proc/<pid>/task/<tid>/children.
bool HasChildrenFiles() {
  static const bool has = ::access("/proc/thread-self/children", R_OK) == 0;
  return has;
}

}  // namespace

// proc(5): pid (comm) state ppid pgrp session ... num_threads is field 20, starttime field 22. comm
// may hold anything, also ") R 1", so the last bracket counts.
std::optional<ProcessInfo> ParseStat(std::string_view text) {
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  constexpr std::size_t kFields = 20;  // From field 3 (state) to field 22 (starttime).
  std::array<std::string_view, kFields> fields;
  std::string_view rest = text.substr(close + 1);
  for (std::string_view& field : fields) {
    field = NextWord(rest);
  }
  std::string_view head = text.substr(0, open);
  const auto pid = ParseNumber<pid_t>(NextWord(head));
  const auto parent = ParseNumber<pid_t>(fields[1]);
  const auto group = ParseNumber<pid_t>(fields[2]);
  const auto session = ParseNumber<pid_t>(fields[3]);
  const auto threads = ParseNumber<std::int64_t>(fields[17]);
  const auto start_time = ParseNumber<std::uint64_t>(fields[19]);
  if (!pid || fields[0].size() != 1 || !parent || !group || !session || !threads || !start_time) {
    return std::nullopt;
  }
  return ProcessInfo{*pid,
                     *parent,
                     *group,
                     *session,
                     fields[0].front(),
                     *threads,
                     *start_time,
                     std::string(text.substr(open + 1, close - open - 1))};
}

std::optional<ProcessInfo> ReadProcess(pid_t pid) {
  const std::optional<std::string> text = ReadProcFile(fmt::format("/proc/{}/stat", pid), 4096);
  return text ? ParseStat(*text) : std::nullopt;
}

std::vector<ProcessInfo> ReadAllProcesses() {
  std::vector<ProcessInfo> processes;
  for (const pid_t pid : ListNumbers("/proc")) {
    if (std::optional<ProcessInfo> info = ReadProcess(pid)) {
      processes.push_back(std::move(*info));
    }
  }
  return processes;
}

Children ReadChildren(pid_t pid) {
  Children children;
  children.complete = HasChildrenFiles();
  for (const pid_t thread : ListNumbers(fmt::format("/proc/{}/task", pid))) {
    const std::optional<std::string> text =
        ReadProcFile(fmt::format("/proc/{}/task/{}/children", pid, thread), kEnvironmentLimit);
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    while (const auto child = ParseNumber<pid_t>(NextWord(rest))) {
      children.pids.push_back(*child);
    }
  }
  return children;
}

std::optional<std::string> ReadEnvironmentVariable(pid_t pid, std::string_view name) {
  const std::optional<std::string> text =
      ReadProcFile(fmt::format("/proc/{}/environ", pid), kEnvironmentLimit);
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    const std::string_view variable = rest.substr(0, rest.find('\0'));
    if (variable.size() > name.size() && variable.starts_with(name) &&
        variable[name.size()] == '=') {
      return std::string(variable.substr(name.size() + 1));
    }
    rest.remove_prefix(std::min(variable.size() + 1, rest.size()));
  }
  return std::nullopt;
}

int SignalProcess(const ProcessInfo& process, int signal) {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (!pidfd) {
    return errno;
  }
  const std::optional<ProcessInfo> now = ReadProcess(process.pid);
  if (!now || now->start_time != process.start_time) {
    return ESRCH;
  }
  return ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0 ? 0 : errno;
}

}  // namespace ddprun
