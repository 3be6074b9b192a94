#include "agent/process/pidfd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

namespace ddprun {
namespace {

// glibc 2.36 has wrappers; musl and older ones do not.
constexpr idtype_t kPidfdType = static_cast<idtype_t>(3);  // P_PIDFD

ExitStatus ToExitStatus(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) {
    return {ExitStatus::Kind::kExited, info.si_status, false};
  }
  return {ExitStatus::Kind::kSignaled, info.si_status, info.si_code == CLD_DUMPED};
}

}  // namespace

Expected<Pidfd> Pidfd::Open(pid_t child) {
  // pidfd_open sets close-on-exec itself.
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (!fd) {
    const int err = errno;
    return Fail(err, fmt::format("pidfd_open of pid {}", child));
  }
  return Pidfd(std::move(fd));
}

Expected<void> Pidfd::Signal(int signal) const {
  if (::syscall(SYS_pidfd_send_signal, fd_.get(), signal, nullptr, 0) != 0) {
    const int err = errno;
    return Fail(err, fmt::format("send {}", SignalName(signal)));
  }
  return {};
}

bool Pidfd::ended() const {
  pollfd poll = {fd_.get(), POLLIN, 0};
  return ::poll(&poll, 1, 0) == 1 && (poll.revents & POLLIN) != 0;
}

Expected<std::optional<ExitStatus>> Pidfd::WaitId(int options) {
  siginfo_t info = {};
  int result = 0;
  do {
    result = ::waitid(kPidfdType, static_cast<id_t>(fd_.get()), &info, WEXITED | options);
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    const int err = errno;
    return Fail(err, "waitid");
  }
  if (info.si_pid == 0) {
    return std::optional<ExitStatus>();  // WNOHANG, and it lives.
  }
  return std::optional<ExitStatus>(ToExitStatus(info));
}

Expected<ExitStatus> Pidfd::Wait() {
  return WaitId(0).map([](const std::optional<ExitStatus>& status) { return *status; });
}

Expected<std::optional<ExitStatus>> Pidfd::TryWait() {
  return WaitId(WNOHANG);
}

Expected<UniqueFd> Pidfd::Duplicate() const {
  UniqueFd copy(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) {
    const int err = errno;
    return Fail(err, "duplicate a pidfd");
  }
  return copy;
}

}  // namespace ddprun
