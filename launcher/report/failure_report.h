#pragma once

// The final report of a failed job: first torchrun's block, which tools read (layout of torch
// 2.15, errors.ChildFailedError.format_msg), then our own part, which people read. Formatting only;
// called once by the launcher's main when the workers are gone.

#include <cstddef>
#include <string>
#include <vector>

#include "agent/core/failure_hints.h"
#include "agent/core/process_failure.h"
#include "agent/core/root_cause.h"

namespace ddprun {

// Where the guilty rank's stderr went, and its end if we have it.
struct StderrOfRank {
  enum class Route {
    kFile,       // Redirected or tee'd: `tail` and `path` are set.
    kInherited,  // The launcher's own stderr: already on the screen, above.
    kDiscarded,  // /dev/null, by --local-ranks-filter.
  };
  Route route = Route::kInherited;
  std::string tail;  // The last bytes of it, as they are; 64 KiB are plenty.
  std::string path;
};

struct FailureReport {
  std::string name;                      // EntrypointName() of the workers' command.
  std::string host;                      // Fully qualified name of this node.
  std::vector<ProcessFailure> failures;  // In the order in which they were seen; not empty.
  RootCause root;                        // FindRootCause(failures, ...).
  FailureHints hints;                    // HintsFor() the root cause.
  StderrOfRank root_stderr;
  std::string log_folder;             // Of this attempt; empty when there is none.
  std::vector<std::string> warnings;  // Such as error files that could not be read.
};

inline constexpr std::size_t kStderrLines = 20;
// Our part never takes more, whatever goes in.
inline constexpr std::size_t kMaxDiagnosisLines = 45;
// A longer message (traceback) is cut in the middle of the block; its error file has it whole.
inline constexpr std::size_t kMaxMessageLines = 400;
inline constexpr std::size_t kMaxMessageBytes = std::size_t{64} << 10U;

// Both parts; begins with a blank line, as torch's does, and ends with a newline.
std::string FormatFailureReport(const FailureReport& report);

// Torch's block alone: from its blank line to the last row of '='. Workers that ended with exit
// code 0 (because we stopped them, in good order) are left out; times are in the local time zone.
std::string FormatFailureBlock(const FailureReport& report);

// Our part alone: cause, facts, fixes, consequences, warnings, the rank's last lines, the logs.
std::string FormatDiagnosis(const FailureReport& report);

// The log line for the root cause of each failed attempt: "failed (exitcode: 7) local_rank: 0 (pid:
// 12) of binary: python".
std::string FormatAttemptLine(const ProcessFailure& root, const std::string& program);

// Torch's launcher.api._get_entrypoint_name: the first argument that does not begin with '-' when
// the program is the interpreter that the launcher chose itself, else the program's own text
// (--no-python, PYTHON_EXEC). `command` is the worker's whole argv.
std::string EntrypointName(const std::vector<std::string>& command, bool default_interpreter);

}  // namespace ddprun
