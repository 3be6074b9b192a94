#pragma once

// Shell completion scripts, made from the option table. They complete the launcher's options up to
// the script, then file names.

#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

enum class Shell { kBash, kZsh, kFish, kTcsh };

// "bash", "zsh", "fish" or "tcsh"; anything else is bash.
Shell ShellOf(std::string_view name);

// `programs` are the command names that the script completes, one or more.
std::string CompletionScript(Shell shell, const std::vector<std::string>& programs);

}  // namespace ddprun
