#pragma once

// Pidfd: the identity of one child process of ours (pidfd_open(2), Linux 5.3). Unlike a pid it can
// never mean another process. It is readable (poll, Asio) from the moment the process is dead; the
// process stays a zombie until Wait or TryWait has taken its status, which only its owner does.

#include <sys/types.h>

#include <optional>

#include "agent/core/exit_status.h"
#include "agent/process/unique_fd.h"
#include "rendezvous/base/error.h"

namespace ddprun {

class Pidfd {
 public:
  Pidfd() = default;

  // For a child that nobody has reaped yet, so that the pid is certain to be its own.
  static Expected<Pidfd> Open(pid_t child);

  // pidfd_send_signal(2). A zombie accepts any signal; kNotFound once it is reaped;
  // kPermissionDenied for a set-uid program.
  Expected<void> Signal(int signal) const;

  // Dead, reaped or not. Never blocks.
  bool ended() const;

  // Takes the status and reaps; blocks until the process is dead. kUnknown (ECHILD) when it was
  // reaped before.
  Expected<ExitStatus> Wait();

  // As Wait, but nullopt at once while the process lives.
  Expected<std::optional<ExitStatus>> TryWait();

  // A second descriptor of the same process, for an asio::posix::stream_descriptor, which closes
  // what it is given.
  Expected<UniqueFd> Duplicate() const;

  explicit operator bool() const { return static_cast<bool>(fd_); }
  int get() const { return fd_.get(); }

 private:
  explicit Pidfd(UniqueFd fd) : fd_(std::move(fd)) {}
  Expected<std::optional<ExitStatus>> WaitId(int options);

  UniqueFd fd_;
};

}  // namespace ddprun
