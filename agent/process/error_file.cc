#include "agent/process/error_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/core/clean_text.h"
#include "agent/core/json_text.h"
#include "agent/process/unique_fd.h"
#include "rendezvous/base/error.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

// Keeps the order of members, as Python does.
using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxHeadline = 500;
constexpr std::int64_t kMsPerSecond = 1000;
// What Python's datetime can show: the years 1 to 9999, with a day of room for time zones.
constexpr double kFirstDate = -62135510400.0;
constexpr double kLastDate = 253402214400.0;

const Json* Member(const Json* object, const char* name) {
  if (object == nullptr || !object->is_object()) {
    return nullptr;
  }
  const auto found = object->find(name);
  return found == object->end() ? nullptr : &*found;
}

const std::string* Text(const Json* value) {
  return value == nullptr ? nullptr : value->get_ptr<const std::string*>();
}

std::string Dump(const Json& value) {
  return WithPythonSpacing(value.dump(-1, ' ', true, Json::error_handler_t::replace));
}

std::string IndentFollowingLines(std::string_view text) {
  std::string indented;
  indented.reserve(text.size());
  for (char c : text) {
    indented.push_back(c);
    if (c == '\n') {
      indented.append("  ");
    }
  }
  return indented;
}

std::string Headline(std::string_view text) {
  const std::string_view trimmed = Trim(text);
  const std::string_view line = Trim(trimmed.substr(0, trimmed.find('\n')));
  return ScreenLine(line, kMaxHeadline);
}

std::optional<double> Seconds(const Json& value) {
  if (value.is_number()) {
    return value.get<double>();
  }
  if (const std::string* text = value.get_ptr<const std::string*>()) {
    return ParsePythonFloat(*text);
  }
  return std::nullopt;
}

void TakeTimestamp(const Json* value, ErrorFileReading& reading) {
  if (value == nullptr) {
    return;
  }
  const std::optional<double> seconds = Seconds(*value);
  if (seconds && *seconds >= kFirstDate && *seconds <= kLastDate) {  // Not true of NaN.
    reading.timestamp = static_cast<std::int64_t>(std::trunc(*seconds));
    return;
  }
  reading.warning =
      fmt::format("has the timestamp {}, which is no time, so the moment of the death is used",
                  Shorten(Dump(*value), 40));
}

// The first schema: a traceback if there is one, else the text, else what torch prints then.
void TakeObject(const Json& message, ErrorFileReading& reading) {
  const Json* extra = Member(&message, "extraInfo");
  const std::string* text = Text(Member(&message, "message"));
  const std::string* traceback = Text(Member(extra, "py_callstack"));
  const std::string* shown = traceback != nullptr ? traceback : text;
  reading.message = shown != nullptr ? IndentFollowingLines(*shown) : "<N/A>";
  reading.headline = Headline(text != nullptr ? *text : reading.message);
  TakeTimestamp(Member(extra, "timestamp"), reading);
}

void TakeString(const Json& record, const std::string& text, ErrorFileReading& reading) {
  reading.string_schema = true;
  reading.message = text;
  reading.headline = Headline(text);
  TakeTimestamp(Member(&record, "timestamp"), reading);
}

std::string AsScreenText(std::string_view bytes) {
  std::string text;
  for (const std::string& line : Split(bytes.substr(0, kMaxErrorText), '\n')) {
    text.append(text.empty() ? "" : "\n  ").append(ScreenLine(line, kMaxHeadline));
  }
  return text;
}

ErrorFileReading AsText(std::string_view bytes, std::string_view why) {
  ErrorFileReading reading;
  const std::string_view trimmed = Trim(bytes);
  reading.present = true;
  reading.message = AsScreenText(trimmed);
  reading.headline = Headline(trimmed.substr(0, kMaxErrorText));
  reading.warning = fmt::format("{}, so it is used as text", why);
  if (trimmed.size() > kMaxErrorText) {
    reading.message += fmt::format("\n  ... (cut after {} KiB)", kMaxErrorText >> 10U);
  }
  return reading;
}

// What a failed or bounded read left us with.
struct FileBytes {
  std::string bytes;
  bool too_long = false;
  int errno_value = 0;
};

FileBytes ReadBounded(int fd) {
  FileBytes file;
  constexpr std::size_t kChunk = std::size_t{64} << 10U;
  while (file.bytes.size() <= kMaxErrorFileBytes) {
    const std::size_t old_size = file.bytes.size();
    file.bytes.resize(old_size + kChunk);
    const ssize_t count = ::read(fd, file.bytes.data() + old_size, kChunk);
    const int err = errno;
    file.bytes.resize(old_size + static_cast<std::size_t>(count > 0 ? count : 0));
    if (count == 0 || (count < 0 && err != EINTR)) {
      file.errno_value = count == 0 ? 0 : err;
      return file;
    }
  }
  file.too_long = true;
  return file;
}

std::string_view KindOfFile(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a directory";
    case S_IFIFO:
      return "a FIFO";
    case S_IFSOCK:
      return "a socket";
    default:
      return "a device";
  }
}

ErrorFileReading Refused(const std::string& path, std::string_view why) {
  ErrorFileReading reading;
  reading.warning = fmt::format("error file '{}' is {}, ignoring it", path, why);
  return reading;
}

std::int64_t Milliseconds(const timespec& time) {
  constexpr std::int64_t kNsPerMs = 1000000;
  return static_cast<std::int64_t>(time.tv_sec) * kMsPerSecond + time.tv_nsec / kNsPerMs;
}

ErrorFileReading Understand(const std::string& path, const FileBytes& file) {
  ErrorFileReading reading =
      file.too_long
          ? AsText(file.bytes, fmt::format("is longer than {} MiB", kMaxErrorFileBytes >> 20U))
          : ParseErrorFile(file.bytes);
  if (!reading.warning.empty()) {
    reading.warning = fmt::format("error file '{}' {}", path, reading.warning);
  }
  return reading;
}

std::string MessageFromStatus(const WorkerDeath& death) {
  if (death.status.kind == ExitStatus::Kind::kSignaled) {
    return fmt::format("Signal {} ({}) received by PID {}", death.status.value,
                       SignalName(death.status.value), death.pid);
  }
  return std::string(kNoTracebackHint);
}

// Torch: a string record without a time counts as written in 1970. Not for one that we stopped: it
// would be named the cause of what stopped it.
std::int64_t TimestampOf(const WorkerDeath& death, const ErrorFileReading& reading) {
  if (reading.timestamp) {
    return *reading.timestamp;
  }
  const bool epoch = reading.string_schema && reading.warning.empty() && !death.stopped_by_agent;
  return epoch ? 0 : death.seen_ms / kMsPerSecond;
}

}  // namespace

ErrorFileReading ParseErrorFile(std::string_view bytes) {
  if (Trim(bytes).empty()) {
    ErrorFileReading reading;
    reading.present = true;
    reading.warning = "is empty";
    return reading;
  }
  const Expected<std::string> strict = StrictJson(bytes);
  if (!strict) {
    return AsText(bytes, fmt::format("is no error record ({})", strict.error().message));
  }
  const Json record = Json::parse(*strict, nullptr, false);
  const Json* message = Member(&record, "message");
  if (record.is_discarded() || message == nullptr) {
    return AsText(bytes, record.is_discarded() ? "is not valid JSON" : "has no member \"message\"");
  }
  if (!message->is_object() && !message->is_string()) {
    return AsText(bytes, "has a \"message\" that is neither text nor an object");
  }
  ErrorFileReading reading;
  reading.present = true;
  reading.record = Dump(record);
  if (const std::string* text = Text(message)) {
    TakeString(record, *text, reading);
  } else {
    TakeObject(*message, reading);
  }
  return reading;
}

ErrorFileReading ReadErrorFile(const std::string& path) {
  struct stat info {};
  if (path.empty()) {
    return {};
  }
  if (::stat(path.c_str(), &info) != 0) {
    const int err = errno;
    return err == ENOENT ? ErrorFileReading{} : Refused(path, "unreadable: " + ErrnoText(err));
  }
  if (!S_ISREG(info.st_mode)) {
    return Refused(path, KindOfFile(info.st_mode));
  }
  // O_NONBLOCK: should it have become a FIFO since, open(2) does not wait for a writer.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd || ::fstat(fd.get(), &info) != 0) {
    return Refused(path, "unreadable: " + ErrnoText(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return Refused(path, KindOfFile(info.st_mode));
  }
  const FileBytes file = ReadBounded(fd.get());
  if (file.errno_value != 0) {
    return Refused(path, "unreadable: " + ErrnoText(file.errno_value));
  }
  ErrorFileReading reading = Understand(path, file);
  reading.written_ms = Milliseconds(info.st_mtim);
  return reading;
}

DescribedDeath DescribeDeath(const WorkerDeath& death) {
  ErrorFileReading reading = ReadErrorFile(death.error_file);
  DescribedDeath described;
  ProcessFailure& failure = described.failure;
  failure.local_rank = death.local_rank;
  failure.global_rank = death.global_rank;
  failure.pid = death.pid;
  failure.status = death.status;
  failure.stopped_by_agent = death.stopped_by_agent;
  failure.seen_ms = death.seen_ms;
  failure.timestamp = TimestampOf(death, reading);
  failure.recorded_ms = reading.written_ms;
  failure.error_file = reading.present ? death.error_file : "";
  failure.message = reading.message.empty() ? MessageFromStatus(death) : reading.message;
  failure.headline = std::move(reading.headline);
  failure.record = std::move(reading.record);
  described.warning = std::move(reading.warning);
  return described;
}

}  // namespace ddprun
