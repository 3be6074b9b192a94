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
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const ddprun::Environment environment = ddprun::Environment::OfProcess();
  const ddprun::ParseOutcome outcome =
      ddprun::ParseCommandLine(argc > 0 ? argv[0] : "ddprun", arguments, environment);
  if (const auto* early = std::get_if<ddprun::EarlyExit>(&outcome)) {
    std::FILE* const stream = early->stream == ddprun::EarlyExit::Stream::kStdout ? stdout : stderr;
    std::fputs(early->text.c_str(), stream);
    return early->exit_code;
  }
  return ddprun::Launch(std::get<ddprun::LaunchConfig>(outcome), environment, start_signals);
}
