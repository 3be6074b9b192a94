#include "launcher/report/error_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string_view>

#include "agent/core/clean_text.h"
#include "agent/process/unique_fd.h"
#include "launcher/report/python_json.h"
#include "rendezvous/base/random_id.h"

namespace ddprun {
namespace {

constexpr std::size_t kShownOfOldContent = 500;

OrderedJson MakeRecord(const std::string& message, const std::string& details,
                       std::int64_t unix_seconds) {
  OrderedJson record;
  record["message"]["message"] = message;
  record["message"]["extraInfo"]["py_callstack"] = details;
  record["message"]["extraInfo"]["timestamp"] = std::to_string(unix_seconds);
  return record;
}

// The worker's record as it goes out, and what there is to say about it.
struct Copy {
  std::string json;
  std::string warning;
};

Copy CopyOf(const ProcessFailure& root) {
  OrderedJson record = OrderedJson::parse(root.record, nullptr, false);
  if (!record.is_object() || !record.contains("message")) {
    record = MakeRecord(root.headline.empty() ? root.message : root.headline, root.message,
                        root.timestamp);
  }
  OrderedJson& message = record["message"];
  if (!message.is_object()) {
    return {root.record, fmt::format("error file '{}' holds its message as text, so no error code "
                                     "is added to the copy",
                                     root.error_file)};
  }
  if (root.status.exit_code() != 0) {
    message["errorCode"] = root.status.exit_code();
  }
  return {DumpAsPython(record), {}};
}

std::optional<int> WriteAll(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count == 0 || (count < 0 && errno != EINTR)) {
      return count == 0 ? EIO : errno;
    }
    content.remove_prefix(static_cast<std::size_t>(count > 0 ? count : 0));
  }
  return std::nullopt;
}

// For what rename(2) cannot replace. Never waits: a FIFO without a reader is an error.
Expected<RecordOutcome> WriteInPlace(const std::string& path, const std::string& content) {
  constexpr mode_t kMode = 0666;  // The umask takes its part, as in Python's open().
  const UniqueFd fd(::open(
      path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, kMode));
  if (!fd) {
    const int err = errno;
    return Fail(err, fmt::format("write error file '{}'", path));
  }
  if (const auto err = WriteAll(fd.get(), content)) {
    return Fail(*err, fmt::format("write error file '{}'", path));
  }
  return RecordOutcome{true, {}};
}

std::string TemporaryBeside(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  return fmt::format("{}.{}.{}", path.substr(0, name), path.substr(name), RandomSuffix());
}

// False when the folder or the target does not allow it; the temporary file is gone then.
bool WriteAndRename(const std::string& path, const std::string& content) {
  constexpr mode_t kMode = 0666;
  const std::string temporary = TemporaryBeside(path);
  const UniqueFd fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (!fd) {
    return false;
  }
  const bool done =
      !WriteAll(fd.get(), content) && std::rename(temporary.c_str(), path.c_str()) == 0;
  if (!done) {
    ::unlink(temporary.c_str());
  }
  return done;
}

// What a regular file at `path` begins with; nullopt when there is none.
std::optional<std::string> OldContent(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd) {
    return std::nullopt;
  }
  std::string content(4 * kShownOfOldContent, '\0');
  const ssize_t count = ::read(fd.get(), content.data(), content.size());
  content.resize(static_cast<std::size_t>(count > 0 ? count : 0));
  return content;
}

std::string WarningAboutOld(const std::string& path, const std::string& content) {
  if (content.empty()) {
    return fmt::format("error file '{}' already exists (empty) and is replaced", path);
  }
  std::string line = content;
  for (char& c : line) {
    c = c == '\n' || c == '\r' ? ' ' : c;
  }
  return fmt::format("error file '{}' already exists and is replaced; it held: {}", path,
                     ScreenLine(line, kShownOfOldContent));
}

}  // namespace

Expected<RecordOutcome> ReplaceFile(const std::string& path, const std::string& content) {
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    return WriteInPlace(path, content);  // A directory fails there, with its own text.
  }
  const std::optional<std::string> old = exists ? OldContent(path) : std::nullopt;
  Expected<RecordOutcome> outcome = RecordOutcome{true, {}};
  if (!WriteAndRename(path, content)) {
    outcome = WriteInPlace(path, content);
  }
  if (outcome && old) {
    outcome->warnings.push_back(WarningAboutOld(path, *old));
  }
  return outcome;
}

Expected<RecordOutcome> RecordWorkerFailure(const std::string& path, const ProcessFailure& root) {
  RecordOutcome outcome;
  if (root.error_file.empty()) {
    return outcome;
  }
  if (path.empty()) {
    outcome.warnings.push_back(
        fmt::format("TORCHELASTIC_ERROR_FILE is not set for the launcher, so error file '{}' is "
                    "not copied",
                    root.error_file));
    return outcome;
  }
  const Copy copy = CopyOf(root);
  Expected<RecordOutcome> written = ReplaceFile(path, copy.json);
  if (written && !copy.warning.empty()) {
    written->warnings.push_back(copy.warning);
  }
  return written;
}

Expected<RecordOutcome> RecordLauncherFailure(const std::string& path,
                                              const LauncherFailure& failure) {
  if (path.empty()) {
    return RecordOutcome{};
  }
  const std::string& details = failure.details.empty() ? failure.message : failure.details;
  return ReplaceFile(path,
                     DumpAsPython(MakeRecord(failure.message, details, failure.unix_seconds)));
}

}  // namespace ddprun
