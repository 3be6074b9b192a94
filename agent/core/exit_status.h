#pragma once

// How a process ended. A plain value, filled from waitid(2) by agent/process.

#include <string>

namespace ddprun {

struct ExitStatus {
  enum class Kind { kExited, kSignaled };

  Kind kind = Kind::kExited;
  int value = 0;             // Exit code 0..255, or the signal's number.
  bool core_dumped = false;  // Only for kSignaled.

  bool success() const { return kind == Kind::kExited && value == 0; }

  // As Python's subprocess shows it and torch's report prints it: the code, or minus the signal's
  // number.
  int exit_code() const { return kind == Kind::kExited ? value : -value; }

  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

// "SIGTERM" for 15; real-time signals as "SIGRTMIN+n"; "SIG<number>" for what has no name.
std::string SignalName(int signal);

// "exit code 7" or "signal 11 (SIGSEGV)".
std::string Describe(const ExitStatus& status);

}  // namespace ddprun
