#pragma once

// Guardian: the small process that cleans up when the launcher itself is killed with SIGKILL.
// NodeAgent owns it. It is forked before the launcher has threads, lives in a session of its own,
// ignores every signal that can be ignored, holds one socket and nothing else (a pipeline that
// reads our output sees its end), and is called `ddp-guard` in every process list: a name that
// `pkill ddprun` does not match.
//
// As long as the socket and the launcher live, it sleeps. After Goodbye it exits at once. When the
// launcher is gone without goodbye, it kills the cgroup, every process whose environment holds the
// job's marker, every process of the registered workers' sessions, and all that is below these,
// until two looks in a row find nothing (at most 10 s); then it removes the owned paths and the
// cgroup, and exits. Workers die before that through their own parent-death signal. Without a
// cgroup one kind of process cannot be found then: one that has cleared its environment, made its
// own session, and lost its parent.

#include <sys/types.h>

#include <string>
#include <string_view>

#include "agent/process/job_marker.h"
#include "agent/process/pidfd.h"
#include "agent/process/unique_fd.h"
#include "rendezvous/base/error.h"

namespace ddprun {

class Guardian {
 public:
  static constexpr const char* kProcessName = "ddp-guard";

  // Forks it. Main thread, before other threads exist, as early as may be: its memory is the
  // launcher's at that moment. Register pid() with ProcessTree::AddHelper.
  static Expected<Guardian> Start(const JobMarker& marker);

  Guardian(Guardian&&) = default;
  Guardian& operator=(Guardian&&) = delete;
  ~Guardian() = default;  // Without Goodbye the guardian cleans up: as if the launcher had died.

  pid_t pid() const { return pid_; }
  const Pidfd& pidfd() const { return pidfd_; }

  // These only send a datagram, never block and never raise SIGPIPE. kUnavailable when the guardian
  // is gone (somebody killed it): the launcher goes on without the net and may start another one.

  // Right after the spawn. The guardian notes the worker's start time, so that a pid used again is
  // safe.
  Expected<void> WatchWorker(pid_t pid);
  // When the worker is reaped and nothing is left of its session.
  Expected<void> ForgetWorker(pid_t pid);

  // A file, FIFO or folder that is removed in the end. Tell it *before* making it. Only absolute
  // paths without "." and ".." below a directory that exists; never "/" or a direct child of it. If
  // the path exists already, exactly this inode is removed or nothing. Recursive removal follows no
  // symbolic link and stays on one file system.
  Expected<void> OwnPath(const std::string& path, bool recursive);
  Expected<void> DisownPath(const std::string& path);

  // Before the cgroup is made; ProcessTree::MakeCgroup calls it.
  Expected<void> OwnCgroup(const std::string& path);

  // Ends the guardian and reaps it; nothing is killed or removed. Blocks for a millisecond; a
  // guardian that does not go within a second is killed.
  void Goodbye();

 private:
  Guardian(pid_t pid, Pidfd pidfd, UniqueFd socket)
      : pid_(pid), pidfd_(std::move(pidfd)), socket_(std::move(socket)) {}
  Expected<void> Send(std::string_view message);

  pid_t pid_;
  Pidfd pidfd_;
  UniqueFd socket_;
};

}  // namespace ddprun
