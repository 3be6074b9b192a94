#pragma once

// What a worker executes (torchrun 2.15: run.py, config_from_args; SubprocessHandler). Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

// What the user wants to run, from the command line's positional arguments.
struct WorkerTarget {
  enum class Kind {
    kScript,   // PY -u SCRIPT args...
    kModule,   // -m: PY -u -m MODULE args...
    kProgram,  // --no-python: PROGRAM args...
    kRunPath,  // --run-path: SCRIPT through runpy in an interpreter of ours, failures recorded.
  };

  Kind kind = Kind::kScript;
  std::string name;  // Script, module or program.
  std::vector<std::string> args;
};

struct WorkerCommand {
  std::string interpreter;  // Unused for kProgram.
  WorkerTarget target;
  std::optional<std::string> local_rank_argument;  // "--local-rank=${local_rank}", before the args.
};

// The argv of the worker with this (real, not virtual) local rank. ${local_rank} is replaced in the
// script's or module's name and in all arguments, but not in the program to execute.
std::vector<std::string> BuildWorkerArgv(const WorkerCommand& command, std::uint32_t local_rank);

// As Python's string.Template.safe_substitute with the one name local_rank: ${local_rank} and
// $local_rank become the number, $$ becomes $, everything else stays. Names are ASCII and
// case-sensitive.
std::string SubstituteLocalRank(std::string_view text, std::uint32_t local_rank);

}  // namespace ddprun
