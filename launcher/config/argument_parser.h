#pragma once

// Splits the words of a command line into option values, the script and the script's arguments, by
// the rules of Python 3.11's argparse as torch 2.15.0 uses it (first word that is no option is the
// script and ends the launcher's options; see docs/torchrun-compat.md). Knows names, not meanings:
// no value is looked at. Two deliberate differences: a prefix may fit both spellings of one option,
// and a script's arguments are never looked at (Python 3.11 reports a word among them that could be
// short for two options).

#include <optional>
#include <string>
#include <vector>

#include "launcher/config/option_table.h"

namespace ddprun {

// One use of an option, in the order of the command line.
struct OptionUse {
  OptionId id;
  std::string spelling;  // As written, prefixes completed: "--nproc_per_node", "-r".
  std::string value;     // Empty for flags.
};

struct ParsedArguments {
  std::vector<OptionUse> uses;
  std::optional<std::string> script;
  std::vector<std::string> script_arguments;
  // Scanning stops at the first error, but what came before it counts: `--help --bogus=` is help.
  std::optional<std::string> error;
  // Words that look like options and are none. An error too, but one of the whole line: what is
  // wrong with the value of an option that exists is said first.
  std::vector<std::string> unrecognized;
};

ParsedArguments ParseArguments(const std::vector<std::string>& words, Program program);

// The sentence for words that are no options: names the nearest option of the program.
std::string DescribeUnrecognized(const std::vector<std::string>& words, Program program);

}  // namespace ddprun
