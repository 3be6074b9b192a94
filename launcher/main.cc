// ddprun, ddprun-launch and torchrun: one program, whose name selects the defaults.

#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "agent/process/start_signals.h"
#include "launcher/config/command_line.h"
#include "launcher/launch.h"

int main(int argc, char** argv) {
  const ddprun::StartSignals start_signals = ddprun::StartSignals::Capture();
  const std::vector<std::string> words(argv, argv + argc);
  const ddprun::Environment environment = ddprun::Environment::OfProcess();
  const std::vector<std::string> arguments(words.begin() + (words.empty() ? 0 : 1), words.end());
  const ddprun::ParseOutcome outcome =
      ddprun::ParseCommandLine(words.empty() ? "ddprun" : words.front(), arguments, environment);
  if (const auto* early = std::get_if<ddprun::EarlyExit>(&outcome)) {
    std::FILE* const stream = early->stream == ddprun::EarlyExit::Stream::kStdout ? stdout : stderr;
    std::fputs(early->text.c_str(), stream);
    return early->exit_code;
  }
  return ddprun::Launch(std::get<ddprun::LaunchConfig>(outcome), words, environment, start_signals);
}
