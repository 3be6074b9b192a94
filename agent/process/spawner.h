#pragma once

// Spawn: starts one worker. The caller is suspended only until the worker's exec (CLONE_VFORK),
// some 0.3 ms, and never waits for the start-up of the program itself;
// docs/adr/0001-spawn-with-vfork.md has the figures. Main thread only: the parent-death signal
// fires when the spawning *thread* ends. Other threads may exist: between the clone and exec
// nothing but raw system calls run in the child.

#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

#include "agent/process/pidfd.h"
#include "agent/process/start_signals.h"
#include "agent/process/unique_fd.h"
#include "rendezvous/base/error.h"

namespace ddprun {

// Where a standard stream of the worker leads. Borrows a descriptor: it must live until Spawn
// returns.
class StandardStream {
 public:
  static StandardStream Inherit() { return StandardStream(kInherited); }
  static StandardStream Null() { return StandardStream(kDevNull); }
  static StandardStream To(const UniqueFd& fd) { return StandardStream(fd.get()); }

  bool inherits() const { return fd_ == kInherited; }
  bool null() const { return fd_ == kDevNull; }
  int get() const { return fd_; }

 private:
  static constexpr int kInherited = -1;
  static constexpr int kDevNull = -2;
  explicit StandardStream(int fd) : fd_(fd) {}

  int fd_;
};

struct SpawnRequest {
  std::string name;               // How errors call it: "worker 3".
  std::vector<std::string> argv;  // argv[0] without a slash is searched in the worker's PATH.
  std::vector<std::string> environment;  // "NAME=value", complete.
  StandardStream in = StandardStream::Inherit();
  StandardStream out = StandardStream::Inherit();
  StandardStream err = StandardStream::Inherit();
  bool new_session = true;                 // setsid: the worker leads its own session and group.
  int parent_death_signal = SIGKILL;       // Sent by the kernel when the launcher dies; 0: none.
  StartSignals signals;                    // Dispositions and mask that the worker starts with.
  std::vector<const UniqueFd*> keep_open;  // Beyond 0-2, same numbers; everything else is closed.
  const UniqueFd* cgroup =
      nullptr;  // Directory of a cgroup v2 to be born in (ProcessTree::cgroup).
};

struct SpawnedProcess {
  pid_t pid = -1;  // For messages and for registration with ProcessTree and Guardian at once.
  Pidfd pidfd;
  int cgroup_error =
      0;  // Why it is not in the asked-for cgroup (errno); the worker runs all the same.
};

// Errors are one sentence with the stage, the errno and what can be done about it: "worker 3: exec
// 'train.py': permission denied (the file is not executable: chmod +x ...)". `cause` holds the
// errno. After an error no process is left.
Expected<SpawnedProcess> Spawn(const SpawnRequest& request);

}  // namespace ddprun
