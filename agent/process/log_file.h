#pragma once

// The files that workers' output goes to.

#include <memory>
#include <string>
#include <string_view>

#include "agent/process/unique_fd.h"
#include "rendezvous/base/error.h"

namespace ddprun {

// Creates or empties a log file for writing (close-on-exec, appending, so that somebody may
// truncate it meanwhile). For kFile streams the spawner gets this descriptor as it is.
Expected<UniqueFd> CreateLogFile(const std::string& path);

// A log file that the launcher writes itself, on LogPump's thread. Several streams may share one.
class LogFile {
 public:
  LogFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  // Writes everything, or as much as can be. The first failure gives one sentence, later ones an
  // empty string, as success does. After a full disk the next call tries again.
  std::string Write(std::string_view bytes);

  const std::string& path() const { return path_; }

 private:
  UniqueFd fd_;
  std::string path_;
  bool failed_ = false;
};

}  // namespace ddprun
