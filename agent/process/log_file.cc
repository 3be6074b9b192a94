#include "agent/process/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/types.h>

#include <cerrno>

namespace ddprun {

Expected<UniqueFd> CreateLogFile(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
  if (!fd) {
    const int err = errno;
    return Fail(err, fmt::format("create log file '{}'", path));
  }
  return fd;
}

std::string LogFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    const int err = errno;
    if (err == EINTR) {
      continue;
    }
    if (std::exchange(failed_, true)) {
      return {};
    }
    return fmt::format("write '{}': {}; output is missing from this file from here on", path_,
                       ErrnoText(err));
  }
  return {};
}

}  // namespace ddprun
