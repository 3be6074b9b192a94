#include "agent/process/guardian.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "agent/process/guardian_process.h"
#include "agent/process/owned_path.h"

namespace ddprun {
namespace {

constexpr int kGoodbyeLimitMs = 1000;

std::string Compose(GuardianMessage kind, std::string_view text) {
  return fmt::format("{}{}", static_cast<char>(kind), text);
}

}  // namespace

Expected<Guardian> Guardian::Start(const JobMarker& marker) {
  std::array<int, 2> ends = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    const int err = errno;
    return Fail(err, "start the guardian: socketpair");
  }
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t launcher = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    const int err = errno;
    return Fail(err, "start the guardian: fork");
  }
  if (pid == 0) {
    ours.Reset();
    GuardianProcess(marker, std::move(theirs), launcher).Run();
  }
  Expected<Pidfd> pidfd = Pidfd::Open(pid);
  if (!pidfd) {
    ::kill(pid, SIGKILL);
    return FailIn("start the guardian", pidfd.error());
  }
  return Guardian(pid, std::move(*pidfd), std::move(ours));
}

Expected<void> Guardian::Send(std::string_view message) {
  if (::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    const int err = errno;
    return Fail(err, "tell the guardian");
  }
  return {};
}

Expected<void> Guardian::WatchWorker(pid_t pid) {
  return Send(Compose(GuardianMessage::kWatchWorker, std::to_string(pid)));
}

Expected<void> Guardian::ForgetWorker(pid_t pid) {
  return Send(Compose(GuardianMessage::kForgetWorker, std::to_string(pid)));
}

Expected<void> Guardian::OwnPath(const std::string& path, bool recursive) {
  Expected<OwnedPath> owned = OwnedPath::Claim(path, recursive);
  if (!owned) {
    return tl::unexpected<Error>(owned.error());
  }
  return Send(Compose(GuardianMessage::kOwnPath, owned->Encode()));
}

Expected<void> Guardian::DisownPath(const std::string& path) {
  return Send(Compose(GuardianMessage::kDisownPath, path));
}

Expected<void> Guardian::OwnCgroup(const std::string& path) {
  return Send(Compose(GuardianMessage::kOwnCgroup, path));
}

void Guardian::Goodbye() {
  if (!socket_) {
    return;
  }
  // Without the goodbye it would clean up, so it is killed before its socket closes.
  const bool told = Send(Compose(GuardianMessage::kGoodbye, {})).has_value();
  pollfd poll = {pidfd_.get(), POLLIN, 0};
  if (!told || ::poll(&poll, 1, kGoodbyeLimitMs) != 1) {
    static_cast<void>(pidfd_.Signal(SIGKILL));  // Fails only if it is gone, which is what we want.
  }
  static_cast<void>(pidfd_.Wait());  // Reaped before by somebody else: nothing to do.
  socket_.Reset();
}

}  // namespace ddprun
