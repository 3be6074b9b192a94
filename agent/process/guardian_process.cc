#include "agent/process/guardian_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "agent/process/guardian.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kCleanUpLimit{10'000};
constexpr milliseconds kFirstPause{1};
constexpr milliseconds kLongestPause{20};

pid_t ParsePid(std::string_view text) {
  pid_t pid = 0;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  return pid > 1 ? pid : -1;
}

// The argument area of this process, from fields 48 and 49 of /proc/self/stat: the memory that ps
// shows. Written over, because `pkill -f train.py` would else end the guardian together with the
// launcher.
void OverwriteArguments(std::string_view name) {
  const UniqueFd file(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  std::array<char, 2048> buffer = {};
  const ssize_t size = file ? ::read(file.get(), buffer.data(), buffer.size()) : 0;
  const std::string_view text(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::size_t bracket = text.rfind(')');
  if (bracket == std::string_view::npos || bracket + 2 > text.size()) {
    return;
  }
  constexpr std::size_t kArgStart = 48 - 3;  // Counted from field 3, the first after the bracket.
  const std::vector<std::string> fields = Split(text.substr(bracket + 2), ' ');
  if (fields.size() <= kArgStart + 1) {
    return;
  }
  const auto begin = static_cast<std::uintptr_t>(ParsePythonInt(fields[kArgStart]).value_or(0));
  const auto end = static_cast<std::uintptr_t>(ParsePythonInt(fields[kArgStart + 1]).value_or(0));
  if (begin == 0 || end <= begin + name.size()) {
    return;
  }
  char* const area = reinterpret_cast<char*>(begin);
  std::memset(area, 0, end - begin);
  std::memcpy(area, name.data(), name.size());
}

void IgnoreSignals() {
  sigset_t none;
  ::sigemptyset(&none);
  for (int signal = 1; signal < NSIG; ++signal) {
    // A fault of our own must still end us.
    if (signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGILL ||
        signal == SIGFPE || signal == SIGCHLD) {
      ::signal(signal, SIG_DFL);
    } else {
      ::signal(signal, SIG_IGN);  // Refused for SIGKILL and SIGSTOP.
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

// Keeps 0-2 (on /dev/null, so that no later file gets their numbers) and `kept`, which is moved
// to 3.
void CloseAllBut(UniqueFd& kept) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2 && null >= 0; ++fd) {
    if (fd != kept.get()) {
      ::dup2(null, fd);
    }
  }
  constexpr int kPlace = 3;
  if (kept.get() != kPlace) {
    ::dup3(kept.get(), kPlace, O_CLOEXEC);
    const int old = kept.Release();
    kept.Reset(kPlace);
    if (old <= 2) {
      ::dup2(null, old);
    }
  }
  if (::syscall(SYS_close_range, kPlace + 1, ~0U, 0) != 0) {
    const long limit = std::min(::sysconf(_SC_OPEN_MAX), 65'536L);
    for (int fd = kPlace + 1; fd < limit; ++fd) {
      ::close(fd);
    }
  }
}

}  // namespace

void GuardianProcess::Run() {
  Detach();
  if (Listen() == Ending::kLauncherGone) {
    CleanUp();
  }
  ::_exit(0);
}

void GuardianProcess::Detach() {
  IgnoreSignals();
  ::setsid();
  ::prctl(PR_SET_NAME, Guardian::kProcessName, 0, 0, 0);
  OverwriteArguments(Guardian::kProcessName);
  CloseAllBut(socket_);
  static_cast<void>(
      ::chdir("/"));  // Holds no file system busy; if it cannot, that is all it costs.
  // A process that a careless library forks in the launcher may hold the socket's other end: the
  // pidfd sees the launcher's death all the same.
  launcher_pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, launcher_, 0)));
  own_start_time_ = ReadProcess(::getpid()).value_or(ProcessInfo{}).start_time;
}

GuardianProcess::Ending GuardianProcess::Listen() {
  for (;;) {
    if (::getppid() != launcher_) {
      return ReadMessages().value_or(Ending::kLauncherGone);
    }
    // poll leaves out a negative descriptor.
    std::array<pollfd, 2> waits = {
        {{socket_.get(), POLLIN, 0}, {launcher_pidfd_.get(), POLLIN, 0}}};
    ::poll(waits.data(), waits.size(), -1);
    if (const std::optional<Ending> ending = ReadMessages()) {
      return *ending;
    }
    if (waits[1].revents != 0) {
      return ReadMessages().value_or(Ending::kLauncherGone);
    }
  }
}

// All that is there; an ending if one of them says so or the launcher's end of the socket is
// closed.
std::optional<GuardianProcess::Ending> GuardianProcess::ReadMessages() {
  std::array<char, kGuardianMessageLimit> buffer;
  for (;;) {
    const ssize_t size = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0) {
      return errno == EAGAIN || errno == EINTR ? std::nullopt
                                               : std::optional<Ending>(Ending::kLauncherGone);
    }
    if (size == 0) {
      return Ending::kLauncherGone;
    }
    const std::string_view message(buffer.data(), static_cast<std::size_t>(size));
    if (const std::optional<Ending> ending = Handle(message)) {
      return ending;
    }
  }
}

std::optional<GuardianProcess::Ending> GuardianProcess::Handle(std::string_view message) {
  const std::string_view text = message.substr(1);
  switch (static_cast<GuardianMessage>(message.front())) {
    case GuardianMessage::kGoodbye:
      return Ending::kGoodbye;
    case GuardianMessage::kWatchWorker:
      WatchWorker(ParsePid(text));
      break;
    case GuardianMessage::kForgetWorker:
      workers_.erase(ParsePid(text));
      break;
    case GuardianMessage::kOwnPath:
      if (std::optional<OwnedPath> path = OwnedPath::Decode(text)) {
        paths_.push_back(std::move(*path));
      }
      break;
    case GuardianMessage::kDisownPath:
      std::erase_if(paths_, [&](const OwnedPath& path) { return path.path() == text; });
      break;
    case GuardianMessage::kOwnCgroup:
      cgroup_path_ = std::string(text);
      break;
  }
  return std::nullopt;
}

void GuardianProcess::WatchWorker(pid_t pid) {
  if (const std::optional<ProcessInfo> info = ReadProcess(pid)) {
    workers_[pid] = info->start_time;
  } else if (pid > 1) {
    workers_[pid] = 0;  // Dead already; its session may live.
  }
}

void GuardianProcess::CleanUp() {
  // Not before: it is announced before it is made.
  if (Expected<JobCgroup> cgroup = JobCgroup::Open(cgroup_path_)) {
    cgroup_ = std::move(*cgroup);
  }
  KillUntilEmpty();
  RemoveOwned();
}

void GuardianProcess::KillUntilEmpty() {
  const Clock::time_point deadline = Clock::now() + kCleanUpLimit;
  milliseconds pause = kFirstPause;
  std::vector<ProcessInfo> members;
  for (int empty_looks = 0; empty_looks < 2 && Clock::now() < deadline;) {
    if (cgroup_) {
      cgroup_->Kill();
    }
    members = FindMembers(members);
    for (const ProcessInfo& member : members) {
      SignalProcess(member, SIGKILL);
    }
    if (members.empty()) {
      ++empty_looks;
      continue;
    }
    empty_looks = 0;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

void GuardianProcess::RemoveOwned() {
  std::reverse(paths_.begin(), paths_.end());  // What was made last goes first.
  for (const OwnedPath& path : paths_) {
    static_cast<void>(path.Remove());  // There is nobody left to tell.
  }
  // The kernel takes a moment to let go of a cgroup whose last process has died.
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(1);
  while (cgroup_ && !cgroup_->Remove() && Clock::now() < deadline) {
    std::this_thread::sleep_for(kFirstPause);
  }
}

// A job's process has started after the guardian, which spares the look into the environment of all
// others and keeps us from any process that was there before. A dying process has lost its
// environment before it is gone: what was a member at the look before still is.
std::vector<ProcessInfo> GuardianProcess::FindMembers(
    const std::vector<ProcessInfo>& before) const {
  const std::vector<ProcessInfo> all = ReadAllProcesses();
  std::map<pid_t, std::uint64_t> start_times;
  for (const ProcessInfo& process : all) {
    start_times[process.pid] = process.start_time;
  }
  std::set<pid_t> inside;
  if (cgroup_) {
    const std::vector<pid_t> pids = cgroup_->Pids();
    inside.insert(pids.begin(), pids.end());
  }
  for (const ProcessInfo& process : before) {
    const auto now = start_times.find(process.pid);
    if (now != start_times.end() && now->second == process.start_time) {
      inside.insert(process.pid);
    }
  }
  for (const ProcessInfo& process : all) {
    if (!inside.contains(process.pid) && IsRoot(process, start_times)) {
      inside.insert(process.pid);
    }
  }
  for (std::size_t size = 0; size != inside.size();) {  // Until no child is new.
    size = inside.size();
    for (const ProcessInfo& process : all) {
      if (inside.contains(process.parent)) {
        inside.insert(process.pid);
      }
    }
  }
  std::vector<ProcessInfo> members;
  std::ranges::copy_if(all, std::back_inserter(members), [&](const ProcessInfo& process) {
    return inside.contains(process.pid) && process.alive() && process.pid != ::getpid() &&
           process.pid != launcher_ && process.start_time >= own_start_time_;
  });
  return members;
}

bool GuardianProcess::IsRoot(const ProcessInfo& process,
                             const std::map<pid_t, std::uint64_t>& start_times) const {
  if (process.start_time < own_start_time_ || !process.alive() || process.pid == ::getpid()) {
    return false;
  }
  if (const auto worker = workers_.find(process.session); worker != workers_.end()) {
    // A session keeps its number while it has members. If its leader lives, it must be the worker.
    const auto leader = start_times.find(worker->first);
    if (leader == start_times.end() || leader->second == worker->second) {
      return true;
    }
  }
  const auto value = ReadEnvironmentVariable(process.pid, JobMarker::kVariable);
  return value && marker_.matches(*value);
}

}  // namespace ddprun
