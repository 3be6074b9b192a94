#pragma once

// ProcessTree: everything that this launcher has started, directly or not. NodeAgent owns the one
// instance and calls it on the main thread.
//
// While the launcher lives, it is the subreaper (PR_SET_CHILD_SUBREAPER) of all its descendants:
// whatever they do to their session, group, environment or parents, they stay below us. So the
// members are our descendants minus the registered helpers. A cgroup, where we may make one, adds
// atomic killing and makes the Guardian certain to find all of it after the launcher's own death.

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/core/exit_status.h"
#include "agent/process/job_cgroup.h"
#include "agent/process/job_marker.h"
#include "agent/process/process_table.h"

namespace ddprun {

class Guardian;

// A member that did not take a signal or did not die of SIGKILL, for the report: "pid 4242
// (python3, state D: uninterruptible sleep): operation not permitted".
struct StubbornProcess {
  ProcessInfo process;
  int errno_value = 0;  // EPERM: a set-uid program; 0: signalled, but still there.
};
std::string Describe(const StubbornProcess& stubborn);

class ProcessTree {
 public:
  struct Options {
    bool use_children_files =
        true;  // False: always scan all of /proc (a kernel without children files).
  };

  // Becomes the subreaper; never fails. Before the Guardian, which needs the marker.
  static ProcessTree Create(const std::string& job_id, Options options);
  static ProcessTree Create(const std::string& job_id) { return Create(job_id, Options()); }

  // Makes the cgroup if it can, after it has told the guardian (may be null), so that a launcher
  // killed in between leaves none behind. Once, before the first spawn.
  void MakeCgroup(Guardian* guardian);

  ProcessTree(ProcessTree&&) = default;
  ProcessTree& operator=(ProcessTree&&) = delete;
  ~ProcessTree();  // Removes the cgroup, if it is empty by now.

  const JobMarker& marker() const { return marker_; }  // assignment() goes into each environment.

  // Before the workers of another attempt start: nothing is left of the former one. A cgroup that
  // was killed is made anew, because newer kernels (seen on 6.18) also kill what is born into it
  // later by clone3: they compare its count of kills with that of the launcher's own cgroup.
  void RenewCgroup();

  // For SpawnRequest::cgroup; null when there is none. Not for helpers.
  const UniqueFd* cgroup() const { return cgroup_ ? &cgroup_->directory() : nullptr; }
  // Empty when there is none.
  std::string cgroup_path() const { return cgroup_ ? cgroup_->path() : std::string(); }

  // One sentence on how the tree is held together, and why there is no cgroup, for the log.
  const std::string& containment() const { return containment_; }

  // Every child of this process that was not adopted must be registered right after its spawn: its
  // owner reaps it, ReapOrphans leaves it alone. Workers are members; helpers (guardian, probes)
  // and what is below them are not.
  void AddWorker(pid_t pid, bool own_session = true);
  void WorkerReaped(pid_t pid);  // Its pid may be used again; its session is still remembered.
  void ForgetWorker(pid_t pid);  // Its whole group is done with.
  void AddHelper(pid_t pid);
  void HelperReaped(pid_t pid);

  // Living members: workers and everything below. Zombies are not listed.
  std::vector<ProcessInfo> Members() const;
  // Of one worker: itself, what is below it, and what is in its session.
  std::vector<ProcessInfo> MembersOf(pid_t worker) const;

  // To the worker's process group, as torchrun does since 2.2; also when its leader is dead. False:
  // there is nobody in it any more. A worker without a group of its own gets the signal through its
  // tree.
  bool SignalGroup(pid_t worker, int signal);

  // To every member; SIGTERM and other ending signals are followed by SIGCONT, so that stopped
  // processes see them. Returns those that refused.
  std::vector<StubbornProcess> SignalTree(int signal);
  std::vector<StubbornProcess> SignalTree(pid_t worker, int signal);

  // One round of SIGKILL to everything, without waiting. Returns what was still there when it
  // began: call again from a timer (1 ms, doubling) until it is empty twice in a row.
  std::vector<StubbornProcess> KillOnce();

  // KillOnce until nothing is left, reaping orphans, at most `limit`. Blocks. Returns what could
  // not be ended: never empty-handed about a process in uninterruptible sleep or one that may not
  // be signalled.
  std::vector<StubbornProcess> KillAll(std::chrono::milliseconds limit);

  // Ctrl-Z and fg: SIGSTOP to all members; SIGCONT to those that Suspend stopped, not to those that
  // were stopped already.
  void Suspend();
  void Resume();

  // Reaps dead children that nobody registered: orphans that we adopted (also as PID 1 of a
  // container). Call it on SIGCHLD. Never blocks, never takes a registered child's status.
  using OrphanCallback = std::function<void(pid_t, const ExitStatus&)>;
  void ReapOrphans(const OrphanCallback& callback = {});

 private:
  struct WorkerEntry {
    bool own_session = true;
    bool reaped = false;
  };
  struct ProcessKey {
    pid_t pid;
    std::uint64_t start_time;
    friend auto operator<=>(const ProcessKey&, const ProcessKey&) = default;
  };

  explicit ProcessTree(JobMarker marker) : marker_(std::move(marker)) {}
  bool Registered(pid_t pid) const;
  bool Stranger(const ProcessInfo& process) const;
  void ForgetGone(const std::vector<ProcessInfo>& members) const;
  static void KillGroups(const std::vector<ProcessInfo>& members);

  JobMarker marker_;
  Options options_;
  std::optional<JobCgroup> cgroup_;
  bool cgroup_was_killed_ = false;
  std::string containment_;
  std::map<pid_t, WorkerEntry> workers_;
  std::set<pid_t> helpers_;
  std::set<ProcessKey> suspended_;
  mutable std::set<ProcessKey>
      recognised_;  // As PID 1: adopted members that have shown the marker.
};

}  // namespace ddprun
