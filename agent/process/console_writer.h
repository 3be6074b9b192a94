#pragma once

// ConsoleWriter: the launcher's stdout and stderr for everybody in the launcher, without ever
// making a caller wait for the reader at the other end.
//
// Each stream has a bounded buffer and a thread of its own that does plain blocking writes; if both
// streams are the same file (a terminal, `2>&1`), they share one buffer and one thread, so that
// order is kept and no line lands inside another. O_NONBLOCK is never set: the open file is shared
// with the user's shell and with the workers.
//
// Rules:
// - Chunks are whole lines. A chunk is taken whole or not at all.
// - A full buffer (kLimit) takes no more worker output; what is refused is counted in lines, and as
//   soon as the reader goes on, one line says "ddprun: N lines dropped, console reader too slow".
//   The launcher's own lines (WriteOwn) have a reserve (kReserve) on top.
// - Who can wait should: LogPump stops reading from the workers while a buffer is full, and gives
//   up waiting when the reader has taken nothing for kPatience. So only a reader that stands still
//   loses lines; a slow one slows the workers down as it would without a launcher between.
// - A failing write (EPIPE, EIO, ENOSPC, a closed descriptor) ends the stream for good and without
// a
//   word: the output goes on to the log files alone.
//
// All functions may be called from any thread. SIGPIPE and all other signals are blocked in the
// threads. They start with the first chunk.

#include <functional>
#include <memory>
#include <string>

#include "agent/core/logs_specs.h"
#include "agent/process/unique_fd.h"
#include "rendezvous/base/clock.h"

namespace ddprun {

class ConsoleWriter {
 public:
  static constexpr std::size_t kLimit = std::size_t{8} << 20;    // Bytes waiting, for each file.
  static constexpr std::size_t kReserve = std::size_t{1} << 20;  // More of them for WriteOwn().
  static constexpr Duration kPatience = std::chrono::seconds(1);

  // Over duplicates of descriptors 1 and 2. One that is not open counts as broken.
  ConsoleWriter();
  // Over any two files, for tests and benchmarks.
  ConsoleWriter(UniqueFd out, UniqueFd err);
  // Does not wait: a thread that sits in a write(2) is left behind to the end of the process. Call
  // Flush() first.
  ~ConsoleWriter();
  ConsoleWriter(const ConsoleWriter&) = delete;
  ConsoleWriter& operator=(const ConsoleWriter&) = delete;

  // Worker output: whole lines. False if they were dropped.
  bool Write(StdStream stream, std::string chunk);

  // The launcher's own lines: log, report.
  bool WriteOwn(StdStream stream, std::string chunk);

  // The buffer takes no more worker output now.
  bool IsFull(StdStream stream) const;
  // Something waits, and the reader has taken nothing since `now` - kPatience.
  bool IsStalled(StdStream stream, TimePoint now) const;
  // A write failed: nobody will read this any more.
  bool IsBroken(StdStream stream) const;
  // True if both streams are one file, and so one buffer.
  bool streams_are_one() const;

  // `on_room` runs on a writer thread when a buffer that was full has fallen to half, or the stream
  // broke. nullptr to unset; after that returns, the old one runs no more. Must not call back here.
  void SetRoomCallback(std::function<void()> on_room);

  // Waits until everything is written or the streams are broken: true. Gives up, with false, when
  // the reader takes nothing for `patience`, or after `limit`. For the end of the launcher.
  bool Flush(Duration patience, Duration limit);

 private:
  class Channel;

  Channel& Of(StdStream stream) const;

  std::shared_ptr<Channel> out_;
  std::shared_ptr<Channel> err_;  // The same object as out_ when the streams are one.
};

}  // namespace ddprun
