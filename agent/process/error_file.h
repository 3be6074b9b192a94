#pragma once

// The error file (error.json) that a worker may leave: written by torch's @record, by another
// library, half written, or anything else that a broken process can make of a path. Reading never
// blocks, never fails hard and is bounded in memory and time; what cannot be understood is used as
// text, with a warning (torch 2.15 ends with a parse error and no report). Called on the agent's
// thread after the worker has been reaped.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/core/process_failure.h"

namespace ddprun {

// A longer file is not parsed; its beginning is used as text.
inline constexpr std::size_t kMaxErrorFileBytes = std::size_t{4} << 20U;
// Of text that is no error record, this much is shown.
inline constexpr std::size_t kMaxErrorText = std::size_t{4} << 10U;

// The message of a worker that left neither a traceback nor a signal's number; torch prints a hint
// of its own in this place.
inline constexpr std::string_view kNoTracebackHint =
    "no traceback was recorded; decorate the script's main function with @record to get one "
    "(https://docs.pytorch.org/docs/stable/elastic/errors.html)";

// What was in the file. Both schemas of torch's records are known:
//   {"message": {"message": TEXT, "extraInfo": {"py_callstack": TEXT, "timestamp": "SECONDS"}}}
//   {"message": TEXT, "timestamp": SECONDS}
struct ErrorFileReading {
  bool present = false;                   // A regular file was there.
  std::string message;                    // As the report prints it; may be empty.
  std::string headline;                   // One line, at most 500 characters; may be empty.
  std::optional<std::int64_t> timestamp;  // Unix seconds, if it is one that has a date.
  bool string_schema = false;             // The second schema, which has no timestamp of its own.
  std::string record;                     // json.dumps of it; empty if it was no record.
  std::int64_t written_ms = 0;            // Unix milliseconds of the last change.
  std::string warning;                    // One sentence for the log; empty: nothing odd.
};

// Only the bytes; the caller names the file in the warning. Pure.
ErrorFileReading ParseErrorFile(std::string_view bytes);

// Only regular files are opened (a symbolic link to one counts); a FIFO, a device, a directory or a
// loop of links gives a warning, an absent file or an empty path nothing.
ErrorFileReading ReadErrorFile(const std::string& path);

// A worker that ended with something else than exit code 0, as its agent saw it.
struct WorkerDeath {
  std::uint32_t local_rank = 0;
  std::uint32_t global_rank = 0;
  int pid = 0;
  ExitStatus status;
  std::string error_file;         // TORCHELASTIC_ERROR_FILE of the worker; empty: none.
  std::int64_t seen_ms = 0;       // Unix milliseconds.
  bool stopped_by_agent = false;  // We had already sent it a signal.
};

struct DescribedDeath {
  ProcessFailure failure;
  std::string warning;  // From the error file; empty mostly.
};

// Torch's ProcessFailure: message and time from the error file, else from the way it ended.
DescribedDeath DescribeDeath(const WorkerDeath& death);

}  // namespace ddprun
