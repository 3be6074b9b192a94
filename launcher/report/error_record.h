#pragma once

// The launcher's own error file: an outer scheduler sets TORCHELASTIC_ERROR_FILE for the launcher
// and finds the cause of the failure there, in the layout of torch's records (torch 2.15,
// ErrorHandler.dump_error_file and record_exception). For `ddprun` and `torchrun` only:
// torch.distributed.launch, and so `ddprun-launch`, writes none. Called once by the launcher's
// main, after the report. A failure to write is the caller's warning, never the job's outcome.

#include <cstdint>
#include <string>
#include <vector>

#include "agent/core/process_failure.h"
#include "rendezvous/base/error.h"

namespace ddprun {

struct RecordOutcome {
  bool written = false;
  std::vector<std::string> warnings;  // For the log, one sentence each.
};

// Copies the root cause's record to `path` (empty: the variable is unset; then a warning says so),
// with `message.errorCode` added where `message` is an object; a record of the string schema is
// copied unchanged, with a warning. What the worker left as unparsable text is put into a record.
// Without an error file of the worker nothing is written.
Expected<RecordOutcome> RecordWorkerFailure(const std::string& path, const ProcessFailure& root);

// Any other reason for which the launcher ends with an error, or a signal that stopped it.
// `message` is one line, `details` takes the place of a traceback (empty: the message again).
struct LauncherFailure {
  std::string message;
  std::string details;
  std::int64_t unix_seconds = 0;
};
Expected<RecordOutcome> RecordLauncherFailure(const std::string& path,
                                              const LauncherFailure& failure);

// Replaces the file at once: a reader sees the old or the new content, never half of it. Something
// that cannot be replaced (a bind mount such as Kubernetes' /dev/termination-log, a device, a FIFO
// with a reader) is written in place, without blocking. A warning tells what was there before.
Expected<RecordOutcome> ReplaceFile(const std::string& path, const std::string& content);

}  // namespace ddprun
