#pragma once

// ProcessFailure: what is known about one worker that did not end well (torch:
// errors.ProcessFailure).

#include <cstdint>
#include <string>

#include "agent/core/exit_status.h"

namespace ddprun {

struct ProcessFailure {
  std::uint32_t local_rank = 0;
  std::uint32_t global_rank = 0;
  int pid = 0;
  ExitStatus status;
  bool stopped_by_agent = false;  // Ended because we stopped it, not of its own accord.
  std::string host;               // Where it ran; empty: the host of the report.

  // Unix seconds: from the error file, else when the agent saw the death. Torch orders by it.
  std::int64_t timestamp = 0;
  // Unix milliseconds, finer evidence for what came first; 0 when unknown.
  std::int64_t seen_ms = 0;      // When the agent saw the death.
  std::int64_t recorded_ms = 0;  // When the worker last wrote its error file.

  std::string error_file;  // Path of the record the worker left; empty: "<N/A>" in the report.
  std::string message;     // Traceback or one-line reason, exactly as the report prints it.
  std::string headline;    // One line from the record: "RuntimeError: boom"; empty without one.
  std::string record;      // The record as JSON in json.dumps' style; empty when there is none.

  // The worker left words of its own: it was not struck dead from outside.
  bool has_record() const { return !headline.empty(); }
};

}  // namespace ddprun
