#pragma once

// JobCgroup: a cgroup v2 of the job's own below the launcher's, when we may make one. What lives in
// it can be listed and killed in one go whatever it did to its parent, session and environment.
// Only the workers are in it, not the launcher. See cgroups(7) and
// Documentation/admin-guide/cgroup-v2.rst.

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/unique_fd.h"
#include "rendezvous/base/error.h"

namespace ddprun {

// The directory of the calling process in the cgroup v2 tree, from the texts of
// /proc/self/mountinfo and /proc/self/cgroup. Hybrid mounts (v2 at /sys/fs/cgroup/unified) count.
// nullopt: no v2 tree mounted, or we are outside of what is mounted (a cgroup namespace made
// later).
std::optional<std::string> FindOwnCgroup(std::string_view mountinfo, std::string_view self_cgroup);

class JobCgroup {
 public:
  // Where Create would make it: `ddprun-<id>` below our own cgroup. kNotFound: no cgroup v2 here.
  static Expected<std::string> PathFor(std::string_view id);

  // Makes it at a path from PathFor. Errors are normal: mounted read-only, no permission, a
  // threaded parent; the caller goes on without.
  static Expected<JobCgroup> Create(const std::string& path);

  // One that exists, by its path; kInvalidArgument when the path is not in a cgroup v2 tree.
  static Expected<JobCgroup> Open(std::string path);

  const std::string& path() const { return path_; }

  // For SpawnRequest::cgroup.
  const UniqueFd& directory() const { return directory_; }

  // Everything in it and in cgroups below it. Pids of another pid namespace (0) are left out.
  std::vector<pid_t> Pids() const;

  // SIGKILL to everything in it, atomically (cgroup.kill, Linux 5.14). False: not supported here.
  bool Kill() const;

  // Removes it with all cgroups below; kFailedPrecondition or kUnknown (EBUSY) while something
  // lives in it.
  Expected<void> Remove();

 private:
  JobCgroup() = default;

  std::string path_;
  UniqueFd directory_;
};

}  // namespace ddprun
