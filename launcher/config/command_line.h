#pragma once

// The door of this folder: argv, variables and config file in, a LaunchConfig or a text to print
// out.

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "launcher/config/environment.h"
#include "launcher/config/launch_config.h"

namespace ddprun {

// The parser has the answer already: print `text` and leave with `exit_code`. Help, version,
// completions and configurations go to stdout with 0; errors to stderr with 2 (the command line or
// a value cannot be read) or 1 (it can be read but not be done), as torchrun's.
struct EarlyExit {
  enum class Stream { kStdout, kStderr };
  Stream stream = Stream::kStderr;
  int exit_code = 2;
  std::string text;  // Complete, with the final newline.
};

using ParseOutcome = std::variant<LaunchConfig, EarlyExit>;

// `program_name` is argv[0] as called (its last path component selects the defaults), `arguments`
// are the words after it. Reads the --config file; apart from that and the environment's host test
// it touches nothing. Grammar: Python 3.11's argparse as torch 2.15.0 uses it, with the extensions
// that docs/torchrun-compat.md lists. --print-config is left to the caller (PrintConfig), since the
// counts of devices belong into it.
ParseOutcome ParseCommandLine(std::string_view program_name,
                              const std::vector<std::string>& arguments,
                              const Environment& environment);

// Every option's effective value and where it came from, one TOML line each.
std::string PrintConfig(const LaunchConfig& config);

}  // namespace ddprun
