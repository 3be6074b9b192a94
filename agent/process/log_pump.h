#pragma once

// LogPump: the output of tee'd workers. It reads their pipes, writes every byte as it came into the
// log file, and whole lines with their prefix to the console and, if they match, to the duplicate
// filter files. It has one thread of its own (an Asio io_context), so that a slow disk never delays
// supervision.
//
// What is promised:
// - The log file holds every byte, unchanged. A file that cannot be written (full disk) is reported
//   once; the worker is neither blocked nor killed, and its console output goes on.
// - Console lines are never split between ranks, doubled or lost while the reader moves; the rules
//   for lines (carriage returns, unfinished lines, invalid UTF-8, huge lines) are
//   LogLineAssembler's, those for a console that is too slow ConsoleWriter's.
// - A worker is slowed down by the disk, and by a console reader that is slow but moves; one that
//   stands still costs it ConsoleWriter::kPatience, once for each standstill.
//
// Life: construct, then for each attempt OpenFilters(), Attach() for each kTee stream, spawn, and
// Drain() when all processes of the attempt are gone. A pipe that is still held open by a survivor
// is read until the pump is destroyed. One pump serves all attempts. All functions are for the
// agent's main thread; the callbacks run on the pump's thread (post() to the agent's io_context).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/core/logs_specs.h"
#include "agent/process/console_writer.h"
#include "agent/process/unique_fd.h"
#include "rendezvous/base/clock.h"
#include "rendezvous/base/error.h"

namespace ddprun {

struct LogDrainLimits {
  // How long a pipe that is empty but not closed (a grandchild holds it) may still bring something.
  Duration quiet = std::chrono::milliseconds(100);
  // After this, waiting for a slow console ends: what is left goes to the files, lines that find
  // the console's buffer full are dropped.
  Duration console = std::chrono::seconds(10);
};

class LogPump {
 public:
  // `on_warning` gets one sentence, at most once for each file.
  LogPump(std::shared_ptr<ConsoleWriter> console, std::function<void(std::string)> on_warning);
  // Stops at once: Drain() first. Waits up to a second for the thread; one that hangs in a dead
  // disk is left behind.
  ~LogPump();
  LogPump(const LogPump&) = delete;
  LogPump& operator=(const LogPump&) = delete;

  // Creates the duplicate filter files of an attempt (--duplicate-*-filters). They are used by the
  // streams that are attached from now on.
  Expected<void> OpenFilters(const LogsDest& dest, const LogsSpecs& specs);

  // For a kTee plan: creates the log file and a pipe, starts to read it and returns its write end
  // (close-on-exec, blocking) for the spawner. Close it after the spawn, or the end of the output
  // is never seen.
  Expected<UniqueFd> Attach(const StreamPlan& plan, StdStream stream, std::uint32_t local_rank);

  // Call it when the workers are gone. Reads what they left in their pipes to the end, finishes
  // unfinished lines, and then calls `done` once. Bounded: see LogDrainLimits. It does not wait for
  // the console's reader: ConsoleWriter::Flush() does.
  void Drain(const LogDrainLimits& limits, std::function<void()> done);

 private:
  class Loop;

  std::shared_ptr<Loop> loop_;
};

}  // namespace ddprun
