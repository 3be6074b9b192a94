#pragma once

// Recognises workers that died because their argument parser did not want the local-rank argument
// (or missed it), and says which command works. Pure.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/script/local_rank_argument.h"

namespace ddprun {

// The command line as the user typed it.
struct LaunchedCommand {
  std::vector<std::string> words;  // words[0] is the program: "ddprun", "ddprun-launch".
  std::size_t script_at = 0;       // Index of the script's (module's, program's) name in words.
  LocalRankProgram program = LocalRankProgram::kDdprun;
  std::optional<std::string> local_rank_argument;  // What was added, with its template.
  LocalRankScan scan;
};

// One sentence with the command to type, or nothing when `stderr_tail` (the last lines of a failed
// worker, any bytes) does not say so. Knows the messages of argparse, click, typer, absl, fire,
// getopt, tyro and HfArgumentParser.
std::optional<std::string> ExplainRejectedLocalRank(std::string_view stderr_tail,
                                                    const LaunchedCommand& command);

// The words as one line that a POSIX shell reads back as they are.
std::string ShellJoin(const std::vector<std::string>& words);

}  // namespace ddprun
