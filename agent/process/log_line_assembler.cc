#include "agent/process/log_line_assembler.h"

#include <algorithm>
#include <cstring>

#include "agent/process/log_utf8.h"

namespace ddprun {
namespace {

bool Contains(std::string_view bytes, char c) {
  return !bytes.empty() && std::memchr(bytes.data(), c, bytes.size()) != nullptr;
}

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t") == std::string_view::npos;
}

}  // namespace

LogLineAssembler::LogLineAssembler(std::string prefix, std::vector<std::string> needles)
    : prefix_(std::move(prefix)), needles_(std::move(needles)) {}

void LogLineAssembler::Feed(std::string_view bytes, TimePoint now, LogLineOutput& out) {
  const bool has_returns = Contains(bytes, '\r');
  while (!bytes.empty()) {
    const void* found = std::memchr(bytes.data(), '\n', bytes.size());
    if (found == nullptr) {
      FeedPart(bytes, now, out);
      return;
    }
    const auto length = static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data());
    const std::string_view line = bytes.substr(0, length);
    bytes.remove_prefix(length + 1);
    if (AtLineStart() && !(has_returns && Contains(line, '\r')) && length <= kMaxLine) {
      Emit(line, out);
    } else {
      pending_.append(line);
      EndLine(out);
    }
  }
}

// The start or the middle of a line: waits for its newline, but not for ever.
void LogLineAssembler::FeedPart(std::string_view part, TimePoint now, LogLineOutput& out) {
  const bool returned = !pending_.empty() && pending_.back() == '\r';
  pending_.append(part);
  if (returned || Contains(part, '\r')) {
    KeepNewestState();
  }
  CutLongLine(out);
  if (!deadline_ && HasNews()) {
    deadline_ = overdue_ ? now : now + (refresh_ ? kRefreshAge : kPartialAge);
    overdue_ = false;
  }
}

bool LogLineAssembler::HasNews() const {
  const std::string_view body = Body();
  return !body.empty() && !(refresh_ && (body == shown_ || IsBlank(body)));
}

// Drops the states that were drawn over. A carriage return at the very end draws over nothing yet:
// a newline may follow it.
void LogLineAssembler::KeepNewestState() {
  const std::string_view body = Body();
  const std::size_t last = body.rfind('\r');
  if (last == std::string_view::npos) {
    return;
  }
  refresh_ = true;
  const bool returned = body.size() < pending_.size();
  pending_.assign(std::string(body.substr(last + 1)));
  if (returned) {
    pending_ += '\r';
  }
}

// The current line without carriage returns at its end.
std::string_view LogLineAssembler::Body() const {
  const std::size_t last = pending_.find_last_not_of('\r');
  return std::string_view(pending_).substr(0, last == std::string::npos ? 0 : last + 1);
}

void LogLineAssembler::CutLongLine(LogLineOutput& out) {
  if (pending_.size() <= kMaxLine) {
    return;
  }
  std::string_view rest = pending_;
  EmitFullPieces(rest, out);
  pending_.erase(0, pending_.size() - rest.size());
  continues_ = true;
}

void LogLineAssembler::EndLine(LogLineOutput& out) {
  KeepNewestState();
  const std::string_view body = Body();
  const bool known = refresh_ ? body == shown_ || (continues_ && IsBlank(body)) : body.empty();
  if (!known || !continues_) {
    std::string_view rest = body;
    EmitFullPieces(rest, out);
    Emit(rest, out);
  }
  StartLine();
}

void LogLineAssembler::StartLine() {
  pending_.clear();
  shown_.clear();
  refresh_ = false;
  continues_ = false;
  overdue_ = false;
  deadline_.reset();
}

void LogLineAssembler::Tick(TimePoint now, LogLineOutput& out) {
  if (!deadline_ || now < *deadline_) {
    return;
  }
  deadline_.reset();
  const std::string_view body = Body();
  const std::string_view shown = body.substr(0, body.size() - UnfinishedUtf8(body));
  if (!HasNews() || shown.empty()) {
    overdue_ = true;  // The next state is shown when it comes: its second is over.
    return;
  }
  Emit(shown, out);
  continues_ = true;
  if (refresh_ || body.size() < pending_.size()) {
    refresh_ = true;
    shown_ = body;
  } else {
    pending_.erase(0, shown.size());
  }
}

void LogLineAssembler::Finish(LogLineOutput& out) {
  if (!Body().empty()) {
    EndLine(out);
  }
  StartLine();
}

// Of a line that is too long, all but the last piece. `line` becomes what is left.
void LogLineAssembler::EmitFullPieces(std::string_view& line, LogLineOutput& out) const {
  while (line.size() > kMaxLine) {
    const std::string_view piece = line.substr(0, kMaxLine);
    const std::size_t length = piece.size() - UnfinishedUtf8(piece);
    Emit(piece.substr(0, length), out);
    line.remove_prefix(length);
  }
}

void LogLineAssembler::Emit(std::string_view line, LogLineOutput& out) const {
  const bool filtered = !needles_.empty() && Matches(line);
  if (!filtered && out.want_console) {
    out.console.append(prefix_);
    AppendAsUtf8(out.console, line);
    out.console += '\n';
    return;
  }
  if (!filtered) {
    return;
  }
  const std::size_t start = out.filtered.size();
  out.filtered.append(prefix_);
  AppendAsUtf8(out.filtered, line);
  out.filtered += '\n';
  if (out.want_console) {
    out.console.append(out.filtered, start, std::string::npos);
  }
}

bool LogLineAssembler::Matches(std::string_view line) const {
  return std::any_of(needles_.begin(), needles_.end(), [line](const std::string& needle) {
    return line.find(needle) != std::string_view::npos;
  });
}

}  // namespace ddprun
