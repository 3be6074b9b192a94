#pragma once

// Documents made from the option table. ddprun-docgen prints them; the copies in the repository are
// compared with them by a unit test, so a change of the table without them does not pass.

#include <string>

namespace ddprun {

std::string ManualPage();       // docs/man/ddprun.1
std::string OptionsMarkdown();  // docs/options.md

}  // namespace ddprun
