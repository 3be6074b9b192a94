#include "launcher/config/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "launcher/config/argument_parser.h"
#include "launcher/config/completions.h"
#include "launcher/config/config_builder.h"
#include "launcher/config/config_file.h"
#include "launcher/config/option_table.h"
#include "launcher/config/raw_values.h"
#include "launcher/config/usage.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

constexpr int kSuccess = 0;
constexpr int kCannotBeDone = 1;
constexpr int kUsage = 2;

// One run of the parser. Each stage may end it with an answer.
class Parser {
 public:
  Parser(std::string_view program_name, const std::vector<std::string>& words,
         const Environment& environment)
      : program_(ProgramOf(program_name)),
        environment_(environment),
        arguments_(ParseArguments(words, program_)),
        values_(program_) {}

  ParseOutcome Run() {
    // torch reads flag variables while it builds its parser: before help, with exit code 1.
    using Stage = std::optional<EarlyExit> (Parser::*)();
    for (const Stage stage : {&Parser::CheckFlagVariables, &Parser::CheckArguments,
                              &Parser::ApplyConfigFile, &Parser::ApplyVariables,
                              &Parser::ApplyArguments, &Parser::CheckValues, &Parser::CheckWords}) {
      if (std::optional<EarlyExit> answer = (this->*stage)()) {
        return *std::move(answer);
      }
    }
    Expected<LaunchConfig> config = BuildConfig(values_, arguments_, environment_);
    if (!config) {
      return CannotBeDone(config.error().message);
    }
    return *std::move(config);
  }

 private:
  EarlyExit Print(std::string text) const {
    return {EarlyExit::Stream::kStdout, kSuccess, std::move(text)};
  }

  EarlyExit Misuse(std::string_view sentence) const {
    return {EarlyExit::Stream::kStderr, kUsage, UsageErrorText(program_, sentence)};
  }

  EarlyExit CannotBeDone(std::string_view sentence) const {
    return {EarlyExit::Stream::kStderr, kCannotBeDone, ErrorText(program_, sentence)};
  }

  std::optional<EarlyExit> CheckFlagVariables() {
    for (const OptionSpec& spec : OptionTable()) {
      const std::string variable = VariableOf(spec);
      if (spec.kind != OptionKind::kFlag || variable.empty()) {
        continue;
      }
      const std::optional<std::string> text = environment_.Get(variable);
      if (text && !ParsePythonInt(*text)) {
        return CannotBeDone(
            fmt::format("{}={}: expected a whole number, 1 for on or 0 for off", variable, *text));
      }
    }
    return std::nullopt;
  }

  // In the order of the command line, so that --help before a mistake is help.
  std::optional<EarlyExit> CheckArguments() {
    for (const OptionUse& use : arguments_.uses) {
      if (std::optional<EarlyExit> answer = CheckUse(use)) {
        return answer;
      }
    }
    if (arguments_.error) {
      return Misuse(*arguments_.error);
    }
    return std::nullopt;
  }

  std::optional<EarlyExit> CheckUse(const OptionUse& use) const {
    if (const std::optional<std::string> problem = ProblemOf(SpecOf(use.id), use.value)) {
      return Misuse(fmt::format("{}={}: {}", use.spelling, use.value, *problem));
    }
    switch (use.id) {
      case OptionId::kHelp:
        return Print(HelpText(program_));
      case OptionId::kVersion:
        return Print(VersionText(program_));
      case OptionId::kPrintCompletion:
        return Print(CompletionScript(ShellOf(use.value), {std::string(NameOf(program_))}));
      default:
        return std::nullopt;
    }
  }

  // What is wrong with a value's form, whatever its meaning.
  static std::optional<std::string> ProblemOf(const OptionSpec& spec, const std::string& text) {
    switch (spec.kind) {
      case OptionKind::kInteger:
        return ParsePythonInt(text) ? std::nullopt
                                    : std::optional<std::string>("expected a whole number");
      case OptionKind::kFloat:
        return ParsePythonFloat(text) ? std::nullopt
                                      : std::optional<std::string>("expected a number");
      case OptionKind::kChoice: {
        const std::vector<std::string> choices = ChoicesOf(spec);
        if (std::find(choices.begin(), choices.end(), text) != choices.end()) {
          return std::nullopt;
        }
        return fmt::format("expected {}", Join(choices, ", "));
      }
      default:
        return std::nullopt;
    }
  }

  std::optional<std::string> ConfigPath() const {
    for (auto use = arguments_.uses.rbegin(); use != arguments_.uses.rend(); ++use) {
      if (use->id == OptionId::kConfig) {
        return use->value;
      }
    }
    return environment_.Get(VariableOf(SpecOf(OptionId::kConfig)));
  }

  std::optional<EarlyExit> ApplyConfigFile() {
    const std::optional<std::string> path = ConfigPath();
    if (!path) {
      return std::nullopt;
    }
    const Expected<std::vector<ConfigEntry>> entries = ReadConfigFile(*path, program_);
    if (!entries) {
      return Misuse(entries.error().message);
    }
    for (const ConfigEntry& entry : *entries) {
      if (const std::optional<std::string> problem = ProblemOf(SpecOf(entry.id), entry.text)) {
        return Misuse(
            fmt::format("{}: {} = {}: {}", *path, SpecOf(entry.id).name, entry.text, *problem));
      }
      values_.SetFromConfigFile(entry.id, entry.text, *path);
    }
    return std::nullopt;
  }

  std::optional<EarlyExit> ApplyVariables() {
    for (const OptionSpec& spec : OptionTable()) {
      const std::string variable = VariableOf(spec);
      const std::optional<std::string> text = variable.empty() || !ExistsFor(spec, program_)
                                                  ? std::nullopt
                                                  : environment_.Get(variable);
      if (!text) {
        continue;
      }
      const bool flag = spec.kind == OptionKind::kFlag;
      values_.SetFromVariable(spec.id, flag ? (ParsePythonInt(*text) == 0 ? "0" : "1") : *text,
                              variable);
    }
    return std::nullopt;
  }

  std::optional<EarlyExit> ApplyArguments() {
    for (const OptionUse& use : arguments_.uses) {
      const bool flag = SpecOf(use.id).kind == OptionKind::kFlag;
      values_.SetFromFlag(use.id, flag ? "1" : use.value);
    }
    return std::nullopt;
  }

  // Variables whose value is in effect: a bad one that the command line overrides does not matter.
  // torch does not check the choices of its variables; ours are.
  std::optional<EarlyExit> CheckValues() {
    for (const OptionSpec& spec : OptionTable()) {
      const bool torch_choice =
          spec.kind == OptionKind::kChoice && spec.variable == OptionVariable::kPet;
      if (values_[spec.id].source != ValueSource::kVariable || torch_choice) {
        continue;
      }
      if (const std::optional<std::string> problem = ProblemOf(spec, values_[spec.id].text)) {
        return Misuse(fmt::format("{}: {}", values_.Describe(spec.id), *problem));
      }
    }
    return std::nullopt;
  }

  std::optional<EarlyExit> CheckWords() {
    if (!arguments_.unrecognized.empty()) {
      return Misuse(DescribeUnrecognized(arguments_.unrecognized, program_));
    }
    if (!arguments_.script && !values_.IsOn(OptionId::kPrintConfig)) {
      return Misuse("the script is missing (training_script, training_script_args)");
    }
    return std::nullopt;
  }

  const Program program_;
  const Environment& environment_;
  const ParsedArguments arguments_;
  RawValues values_;
};

}  // namespace

ParseOutcome ParseCommandLine(std::string_view program_name,
                              const std::vector<std::string>& arguments,
                              const Environment& environment) {
  return Parser(program_name, arguments, environment).Run();
}

}  // namespace ddprun
