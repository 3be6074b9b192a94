#include <fmt/format.h>

#include <string>
#include <string_view>

#include "launcher/config/command_line.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

constexpr std::size_t kSourceColumn = 48;

// A TOML string: literal quotes where they hold the text as it is, else a basic string with
// escapes.
std::string Quoted(std::string_view text) {
  const bool control = text.find_first_of("\n\r\t\b\f\x7f") != std::string_view::npos;
  if (!control && text.find('"') == std::string_view::npos &&
      text.find('\\') == std::string_view::npos) {
    return fmt::format("\"{}\"", text);
  }
  if (!control && text.find('\'') == std::string_view::npos) {
    return fmt::format("'{}'", text);
  }
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      escaped += {'\\', c};
    } else if (byte < ' ' || byte == 0x7f) {
      escaped += fmt::format("\\u{:04x}", byte);
    } else {
      escaped.push_back(c);
    }
  }
  return fmt::format("\"{}\"", escaped);
}

std::string SourceText(const ConfigValue& value) {
  switch (value.source) {
    case ValueSource::kFlag:
      return "command line";
    case ValueSource::kVariable:
      return fmt::format("variable {}", value.origin);
    case ValueSource::kConfigFile:
      return fmt::format("config file {}", value.origin);
    case ValueSource::kDerived:
      return fmt::format("derived: {}", value.origin);
    case ValueSource::kDefault:
      break;
  }
  return value.text ? "default" : "default (unset)";
}

// Values that nobody gave are comments, so that the whole can be saved as a config file: giving a
// default explicitly is not always the same as leaving it out (--master-port).
std::string LineOf(const ConfigValue& value) {
  const bool given = value.source != ValueSource::kDefault && value.source != ValueSource::kDerived;
  std::string line = fmt::format("{}{} =", given ? "" : "# ", value.name);
  if (value.text) {
    line += " " + (value.is_flag ? *value.text : Quoted(*value.text));
  }
  return fmt::format("{:<{}}  # {}\n", line, kSourceColumn, SourceText(value));
}

}  // namespace

std::string PrintConfig(const LaunchConfig& config) {
  std::string text;
  for (const ConfigValue& value : config.values) {
    text += LineOf(value);
  }
  if (!config.training_script.empty()) {
    text += fmt::format("# script: {}\n", Quoted(config.training_script));
    for (const std::string& argument : config.training_script_args) {
      text += fmt::format("#   argument: {}\n", Quoted(argument));
    }
  }
  return text;
}

}  // namespace ddprun
