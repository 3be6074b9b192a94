#pragma once

// The last words of a job that was stopped by a signal: who stopped it, after how long, how each
// worker ended; nothing else (torchrun ends with a traceback of itself). Formatting only; called
// once by the launcher's main.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/core/exit_status.h"
#include "rendezvous/base/clock.h"

namespace ddprun {

struct StoppedWorker {
  std::uint32_t global_rank = 0;
  ExitStatus status;
  Duration after{};            // From the signal's arrival to the worker's end.
  bool grace_expired = false;  // Ended by our SIGKILL because it had outlived the grace.
};

struct StopReport {
  int signal = 0;
  int sender_pid = 0;       // siginfo's si_pid; 0: the kernel (a terminal's Ctrl-C) or unknown.
  std::string sender_name;  // Its command, as /proc/PID/comm has it; may be empty.
  Duration ran{};           // From the launcher's start to the signal.
  Duration grace{};         // --shutdown-timeout.
  std::vector<StoppedWorker> workers;
};

inline constexpr std::size_t kMaxStopReportLines = 10;

// "stopped by SIGTERM from pid 12 (bash) after 0:10:05; workers: rank 0 ended 0 after 3 s, ranks
// 1-7 killed after the grace of 30 s" and a newline; with many different ends one line each, ten
// lines at most.
std::string FormatStopReport(const StopReport& report);

// "0:10:05"; days are counted in hours.
std::string FormatHours(Duration duration);

}  // namespace ddprun
