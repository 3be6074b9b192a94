#pragma once

// LogsDirectory: the folders that one launch's output goes to.
//
//   <base>/<run id>_<8 random>/attempt_<restart count>/<local rank>/
//                             /latest -> attempt_<newest>
//
// Base is --log-dir (created with its parents) or <temporary folder>/torchelastic_<8 random>. The
// run folder has mode 0700 and a name that nobody else uses, so two agents with one base never
// write to the same file. Nothing that a former attempt left is ever deleted: a further round with
// the same restart count (after a change of membership) gets attempt_<count>.1, then .2.
//
// Owned by the agent, used on its main thread. All errors are one sentence that names --log-dir or
// the run id.

#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/base/error.h"

namespace ddprun {

class LogsDirectory {
 public:
  // Makes the base and the run folder. An empty log_dir means a temporary base: in TMPDIR, TEMP,
  // TMP, /tmp, /var/tmp, /usr/tmp or the working directory, the first in which a folder can be made
  // (the order of Python's tempfile). "/dev/null" makes nothing.
  static Expected<LogsDirectory> Create(const std::string& log_dir, const std::string& run_id);

  // The folder of a new attempt with one folder for each of the local ranks; `latest` points to it.
  // Returns its absolute path, or an empty one for "/dev/null". Called before each spawn.
  Expected<std::string> StartAttempt(std::uint64_t restart_count,
                                     const std::vector<std::uint32_t>& local_ranks);

  // At the end of the job. A temporary base that holds no file (nothing was redirected or tee'd, no
  // error.json and no other file was left) disappears. Anything else stays, and so does --log-dir.
  void RemoveIfUnneeded();

  // The same from the outside: for whoever cleans up behind a launcher that was killed. Only
  // folders and the `latest` links are removed, and only if there is nothing else.
  static void RemoveIfEmpty(const std::string& base);

  bool discards_files() const { return run_directory_.empty(); }
  bool is_temporary() const { return temporary_; }
  const std::string& base() const { return base_; }                    // Absolute.
  const std::string& run_directory() const { return run_directory_; }  // Absolute.

 private:
  LogsDirectory() = default;
  Expected<void> PointLatestTo(const std::string& attempt_name) const;

  std::string base_;
  std::string run_directory_;
  bool temporary_ = false;
};

}  // namespace ddprun
