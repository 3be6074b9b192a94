#pragma once

// The rules by which local_rank_scan.h finds declarations, one function per way of writing them.
// Internal to this folder; pure.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/script/local_rank_scan.h"
#include "launcher/script/python_source.h"

namespace ddprun {

using LocalRankFound = std::function<void(LocalRankDeclaration)>;

// The spellings that an option string stands for: exactly "--local_rank" or "--local-rank".
std::optional<std::string> OptionSpelling(std::string_view option);

// add_argument and relatives, click's option, DEFINE_*, getopt, docopt.
void FindDeclaringCalls(const PythonSource& source, const LocalRankFound& found);

// Dataclasses, functions and commands whose fields and parameters become options.
void FindDeclaringSignatures(const PythonSource& source, const LocalRankFound& found);

// Comparisons with the words of sys.argv.
void FindArgvLooks(const PythonSource& source, const LocalRankFound& found);

}  // namespace ddprun
