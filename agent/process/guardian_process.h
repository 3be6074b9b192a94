#pragma once

// The Guardian's own process: what runs after the fork. Private to guardian.cc. One thread, nothing
// of the launcher's state is used but the job's marker.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/job_cgroup.h"
#include "agent/process/job_marker.h"
#include "agent/process/owned_path.h"
#include "agent/process/process_table.h"
#include "agent/process/unique_fd.h"

namespace ddprun {

// The first byte of a message; the rest is its text.
enum class GuardianMessage : char {
  kWatchWorker = 'W',   // pid
  kForgetWorker = 'F',  // pid
  kOwnPath = 'P',       // OwnedPath::Encode
  kDisownPath = 'D',    // path
  kOwnCgroup = 'C',     // path
  kGoodbye = 'G',
};
constexpr std::size_t kGuardianMessageLimit = 8192;  // A path has at most 4,096 bytes.

class GuardianProcess {
 public:
  GuardianProcess(JobMarker marker, UniqueFd socket, pid_t launcher)
      : marker_(std::move(marker)), socket_(std::move(socket)), launcher_(launcher) {}

  // Called in the forked child; sleeps until the end, cleans up if need be, and exits the process.
  [[noreturn]] void Run();

 private:
  enum class Ending { kGoodbye, kLauncherGone };

  void Detach();
  Ending Listen();
  std::optional<Ending> ReadMessages();
  std::optional<Ending> Handle(std::string_view message);
  void WatchWorker(pid_t pid);

  void CleanUp();
  void KillUntilEmpty();
  void RemoveOwned();
  std::vector<ProcessInfo> FindMembers(const std::vector<ProcessInfo>& before) const;
  bool IsRoot(const ProcessInfo& process, const std::map<pid_t, std::uint64_t>& start_times) const;

  JobMarker marker_;
  UniqueFd socket_;
  pid_t launcher_;
  UniqueFd launcher_pidfd_;
  std::uint64_t own_start_time_ = 0;
  std::map<pid_t, std::uint64_t> workers_;  // Session leaders, with their start times.
  std::vector<OwnedPath> paths_;
  std::string cgroup_path_;
  std::optional<JobCgroup> cgroup_;  // Opened by CleanUp.
};

}  // namespace ddprun
