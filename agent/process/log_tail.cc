#include "agent/process/log_tail.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "agent/process/log_utf8.h"
#include "agent/process/unique_fd.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

Expected<UniqueFd> OpenRegularFile(const std::string& path, struct stat& status) {
  // A FIFO in the place of the file must not block the report.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    const int err = errno;
    return Fail(err, fmt::format("read log file '{}'", path));
  }
  if (!S_ISREG(status.st_mode)) {
    return Fail(ErrorCode::kFailedPrecondition,
                fmt::format("read log file '{}': not a regular file", path));
  }
  return fd;
}

Expected<std::string> ReadFrom(const UniqueFd& fd, off_t start, std::size_t length) {
  std::string bytes(length, '\0');
  std::size_t filled = 0;
  while (filled < length) {
    const ssize_t got = ::pread(fd.get(), bytes.data() + filled, length - filled,
                                start + static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      const int err = errno;
      return Fail(err, "read log file");
    }
    if (got == 0) {
      break;
    }
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

// The state of a line that is on the screen when its newline comes.
std::string_view FinalState(std::string_view line) {
  const std::size_t last = line.find_last_not_of('\r');
  line = line.substr(0, last == std::string_view::npos ? 0 : last + 1);
  return line.substr(line.rfind('\r') + 1);  // npos + 1 is 0.
}

std::string Printable(std::string_view line, std::size_t line_bytes) {
  std::string text;
  const std::string_view kept = line.substr(0, line_bytes);
  AppendAsUtf8(text, kept.substr(0, kept.size() - UnfinishedUtf8(kept)));
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == '\x7f'; },
      '?');
  if (line.size() > line_bytes) {
    text += "...";
  }
  return text;
}

}  // namespace

Expected<std::vector<std::string>> ReadLogTail(const std::string& path,
                                               const LogTailLimits& limits) {
  struct stat status {};
  const Expected<UniqueFd> fd = OpenRegularFile(path, status);
  if (!fd) {
    return tl::unexpected(fd.error());
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  const std::size_t length = std::min(size, limits.read_bytes);
  const Expected<std::string> bytes = ReadFrom(*fd, static_cast<off_t>(size - length), length);
  if (!bytes) {
    return tl::unexpected(bytes.error());
  }
  std::vector<std::string> lines = Split(*bytes, '\n');
  if (length < size && lines.size() > 1) {
    lines.erase(lines.begin());  // It began before what was read.
  }
  while (!lines.empty() && Trim(FinalState(lines.back())).empty()) {
    lines.pop_back();
  }
  const std::size_t surplus = lines.size() - std::min(lines.size(), limits.lines);
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(surplus));
  for (std::string& line : lines) {
    line = Printable(FinalState(line), limits.line_bytes);
  }
  return lines;
}

}  // namespace ddprun
