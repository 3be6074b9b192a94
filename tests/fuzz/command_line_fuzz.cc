// Any words, variables and config text: an answer with exit code 0, 1 or 2, never a crash. The
// input is cut at newlines; a line `v NAME=VALUE` is a variable, everything behind a line `c` is a
// config file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/config/command_line.h"
#include "launcher/config/config_file.h"
#include "rendezvous/base/text.h"

namespace {

void Check(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void CheckOutcome(const ddprun::ParseOutcome& outcome) {
  if (const auto* early = std::get_if<ddprun::EarlyExit>(&outcome)) {
    Check(early->exit_code >= 0 && early->exit_code <= 2);
    Check((early->exit_code == 0) == (early->stream == ddprun::EarlyExit::Stream::kStdout));
    Check(!early->text.empty() && early->text.back() == '\n');
    return;
  }
  const auto& config = std::get<ddprun::LaunchConfig>(outcome);
  Check(config.min_nodes >= 1 && config.min_nodes <= config.max_nodes);
  Check(!config.run_id.empty() && config.monitor_interval.count() > 0);
  Check(!ddprun::PrintConfig(config).empty());
}

// Words that could name a file for --config: the fuzzer shall not read files.
bool MayNameFile(const std::string& line) {
  return line.find("--c") != std::string::npos || line.find("CONFIG") != std::string::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(data, data + size);
  std::vector<std::string> words;
  ddprun::Environment environment;
  std::size_t begin = 0;
  for (const std::string& line : ddprun::Split(input, '\n')) {
    begin += line.size() + 1;
    const std::size_t equals = line.find('=');
    if (line == "c") {
      const std::string text = input.substr(std::min(begin, input.size()));
      const auto entries = ddprun::ParseConfigText(text, "fuzz.toml", ddprun::Program::kDdprun);
      Check(entries || !entries.error().message.empty());
      break;
    }
    if (MayNameFile(line)) {
      continue;
    }
    if (line.starts_with("v ") && equals != std::string::npos) {
      environment.Set(line.substr(2, equals - 2), line.substr(equals + 1));
    } else {
      words.push_back(line);
    }
  }
  for (const char* program : {"ddprun", "ddprun-launch", "torchrun"}) {
    CheckOutcome(ddprun::ParseCommandLine(program, words, environment));
  }
  return 0;
}
