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
  std::string error_file;  // Path of the record the worker left; empty: "<N/A>" in the report.
  std::string message;  // Traceback or one-line reason, as the report prints it; may hold newlines.
  std::int64_t timestamp =
      0;  // Unix seconds: from the error file, else when the agent saw the death.
  bool stopped_by_agent = false;  // Ended because we stopped it, not of its own accord.
};

}  // namespace ddprun
