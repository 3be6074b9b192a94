#pragma once

// Shorthands of the tests of launcher/config: a command line as one text, and its outcome.

#include <string>
#include <string_view>
#include <vector>

#include "launcher/config/command_line.h"
#include "tests/support/catch.h"

namespace ddprun {

using Words = std::vector<std::string>;

// Words as given plus a script, where the test is about options alone.
inline Words WithScript(Words words) {
  words.emplace_back("train.py");
  return words;
}

inline LaunchConfig Parsed(const Words& words, const Environment& environment = {},
                           std::string_view program = "ddprun") {
  const ParseOutcome outcome = ParseCommandLine(program, words, environment);
  if (const EarlyExit* const early = std::get_if<EarlyExit>(&outcome)) {
    FAIL("expected a configuration, got: " << early->text);
  }
  return std::get<LaunchConfig>(outcome);
}

inline EarlyExit Refused(const Words& words, const Environment& environment = {},
                         std::string_view program = "ddprun") {
  const ParseOutcome outcome = ParseCommandLine(program, words, environment);
  if (std::holds_alternative<LaunchConfig>(outcome)) {
    FAIL("expected a refusal");
  }
  return std::get<EarlyExit>(outcome);
}

// The sentence of an error without "ddprun: error: ", and nothing else on stderr but the usage
// line.
inline std::string Sentence(const EarlyExit& early) {
  const std::size_t mark = early.text.find(": error: ");
  REQUIRE(mark != std::string::npos);
  REQUIRE(early.text.back() == '\n');
  const std::string sentence = early.text.substr(mark + 9, early.text.size() - mark - 10);
  CHECK(sentence.find('\n') == std::string::npos);
  CHECK(early.stream == EarlyExit::Stream::kStderr);
  const std::string before = early.text.substr(0, mark);
  CHECK((before.find("usage: ") != std::string::npos) == (early.exit_code == 2));
  return sentence;
}

inline const ConfigValue& ValueOf(const LaunchConfig& config, std::string_view name) {
  for (const ConfigValue& value : config.values) {
    if (value.name == name) {
      return value;
    }
  }
  FAIL("no value is named " << name);
  return config.values.front();
}

}  // namespace ddprun
