#pragma once

// The last lines of a log file, for the failure report.

#include <cstddef>
#include <string>
#include <vector>

#include "rendezvous/base/error.h"

namespace ddprun {

struct LogTailLimits {
  std::size_t lines = 20;
  std::size_t line_bytes = 1000;  // A longer line keeps its start and ends in "...".
  std::size_t read_bytes = std::size_t{256} << 10;  // Never more is read, from the end of the file.
};

// The last lines, oldest first, without newlines; an unfinished last line counts, empty lines at
// the end do not. Of a line that was redrawn with carriage returns the final state is given.
// Invalid UTF-8 is replaced and control characters other than tab are shown as '?', so that the
// result can be printed. Fails if the file cannot be read or is not a regular file.
Expected<std::vector<std::string>> ReadLogTail(const std::string& path,
                                               const LogTailLimits& limits);

}  // namespace ddprun
