#pragma once

// What the program says about its own command line: usage line, --help, errors, --version. All of
// it comes from the option table.

#include <string>
#include <string_view>

#include "launcher/config/option_table.h"

namespace ddprun {

std::string UsageLine(Program program);  // With its newline.
std::string HelpText(Program program);
std::string VersionText(Program program);

// A mistake on the command line: usage line and "<program>: error: <sentence>".
std::string UsageErrorText(Program program, std::string_view sentence);

// A command line that can be read but not be done: the one line alone.
std::string ErrorText(Program program, std::string_view sentence);

}  // namespace ddprun
