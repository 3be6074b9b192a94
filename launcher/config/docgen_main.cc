// ddprun-docgen: prints one of the documents that are made from the option table. A tool of the
// build, not installed: ddprun-docgen man | markdown | bash | zsh | fish | tcsh.

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/config/completions.h"
#include "launcher/config/manual.h"

namespace {

std::optional<std::string> Document(std::string_view kind) {
  if (kind == "man") {
    return ddprun::ManualPage();
  }
  if (kind == "markdown") {
    return ddprun::OptionsMarkdown();
  }
  for (const std::string_view shell : {"bash", "zsh", "fish", "tcsh"}) {
    if (kind == shell) {
      return ddprun::CompletionScript(ddprun::ShellOf(shell), {"ddprun", "ddprun-launch"});
    }
  }
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<std::string> text = argc == 2 ? Document(argv[1]) : std::nullopt;
  if (!text) {
    std::fputs("usage: ddprun-docgen man|markdown|bash|zsh|fish|tcsh\n", stderr);
    return 2;
  }
  return std::fwrite(text->data(), 1, text->size(), stdout) == text->size() ? 0 : 1;
}
