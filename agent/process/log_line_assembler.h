#pragma once

// LogLineAssembler: the bytes of one worker's stream in, whole console lines with prefix out. No
// I/O and no clock: LogPump feeds it, from its thread.
//
// Rules for the console (the log file always gets the bytes as they are):
// - A line is shown as soon as its newline is there. "\r\n" is a newline.
// - Text without a newline is shown within a second (kPartialAge) as a line of its own. What
// follows
//   it comes on a new line with the prefix again; if only the newline follows, nothing more.
// - A carriage return means that the line is drawn again (a progress bar): only the newest state
//   counts. It is shown at most once a second (kRefreshAge), and the final one always, unless it
//   was the last one shown or is blank (bars that wipe themselves).
// - A line longer than kMaxLine is shown in pieces of that size, each a line with prefix.
// - Invalid UTF-8 becomes U+FFFD, one for each maximal invalid part, as Python's errors="replace"
//   does in torch 2.15. Neither rule above cuts a character in two.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/base/clock.h"

namespace ddprun {

// What one call produced. The caller clears it (keeping the capacity) and passes it again.
struct LogLineOutput {
  bool want_console = true;  // False when nobody reads the console any more.
  std::string console;
  std::string filtered;  // The lines that match a duplicate filter, with prefix.
};

class LogLineAssembler {
 public:
  static constexpr std::size_t kMaxLine = std::size_t{1} << 20;
  static constexpr Duration kPartialAge = std::chrono::milliseconds(800);
  static constexpr Duration kRefreshAge = std::chrono::seconds(1);

  // `needles`: a line that contains one of them, as it is shown but without its prefix, also goes
  // to `filtered`. None: no filter. An empty needle matches every line.
  LogLineAssembler(std::string prefix, std::vector<std::string> needles);

  void Feed(std::string_view bytes, TimePoint now, LogLineOutput& out);

  // When Tick() has something to show; nullopt while nothing waits.
  std::optional<TimePoint> deadline() const { return deadline_; }
  void Tick(TimePoint now, LogLineOutput& out);

  // The end of the stream, or of the worker: an unfinished line is completed.
  void Finish(LogLineOutput& out);

 private:
  void FeedPart(std::string_view part, TimePoint now, LogLineOutput& out);
  void EndLine(LogLineOutput& out);
  void StartLine();
  void CutLongLine(LogLineOutput& out);
  void KeepNewestState();
  std::string_view Body() const;
  bool HasNews() const;
  void EmitFullPieces(std::string_view& line, LogLineOutput& out) const;
  void Emit(std::string_view line, LogLineOutput& out) const;
  bool Matches(std::string_view line) const;
  bool AtLineStart() const { return pending_.empty() && !refresh_ && !continues_; }

  const std::string prefix_;
  const std::vector<std::string> needles_;
  std::string pending_;     // The current line as far as it was not shown; no newline in it.
  std::string shown_;       // The state of a redrawn line that the console has.
  bool refresh_ = false;    // The current line was redrawn.
  bool continues_ = false;  // Something of the current line was shown.
  bool overdue_ = false;    // A deadline passed while there was nothing new.
  std::optional<TimePoint> deadline_;
};

}  // namespace ddprun
