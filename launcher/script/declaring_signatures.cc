#include <algorithm>
#include <array>
#include <map>

#include "launcher/script/local_rank_rules.h"

namespace ddprun {
namespace {

// More arguments than this of one framework call are not looked at.
constexpr std::size_t kMaxNamesPerCall = 32;
constexpr std::size_t kMaxTokensPerCall = 256;

// A call that turns the fields of a class, or the parameters of a function, into options.
struct Framework {
  std::string_view callee;
  std::string_view package;   // Must be imported by the file.
  std::string_view spelling;  // Of a field called local_rank.
  bool first_only;            // Only the first argument is such a class or function.
  bool needs_default;         // What has no default becomes a positional argument.
};

constexpr std::array<Framework, 9> kFrameworks = {{
    {"HfArgumentParser", "transformers", kLocalRankUnderscore, false, false},
    {"add_arguments", "simple_parsing", kLocalRankUnderscore, true, false},
    {"parse", "simple_parsing", kLocalRankUnderscore, true, false},
    {"Fire", "fire", kLocalRankUnderscore, true, false},
    {"CLI", "jsonargparse", kLocalRankUnderscore, true, true},
    {"auto_cli", "jsonargparse", kLocalRankUnderscore, true, true},
    {"cli", "tyro", kLocalRankDash, true, false},
    {"run", "typer", kLocalRankDash, true, true},
    {"ArgumentParser", "simple_parsing", kLocalRankUnderscore, true, false},
}};

class SignatureRules {
 public:
  SignatureRules(const PythonSource& source, const LocalRankFound& found)
      : source_(source), found_(found) {
    for (const PythonFunction& function : source.functions()) {
      Remember(function.name, function.parameters);
    }
    for (const PythonClass& one : source.classes()) {
      Remember(one.name, one.fields);
    }
  }

  void Run() {
    for (const PythonCall& call : source_.calls()) {
      ReadCall(call);
    }
    for (const PythonClass& one : source_.classes()) {
      ReadTap(one);
    }
    if (source_.Imports("typer")) {
      ReadTyperCommands();
    }
  }

 private:
  void Remember(std::string_view owner, const std::vector<PythonParameter>& parameters) {
    for (const PythonParameter& parameter : parameters) {
      if (parameter.name == "local_rank") {
        owners_.emplace(owner, parameter);
      }
    }
  }

  void ReadCall(const PythonCall& call) {
    const auto framework =
        std::find_if(kFrameworks.begin(), kFrameworks.end(), [&](const Framework& one) {
          return one.callee == source_.text(call.name) && source_.Imports(one.package);
        });
    if (framework == kFrameworks.end() || owners_.empty()) {
      return;
    }
    for (const std::string_view name : NamesIn(call.opener, framework->first_only)) {
      const auto owner = owners_.find(name);
      if (owner != owners_.end()) {
        Report(*framework, owner->second);
      }
    }
  }

  // Names given as such, also inside a tuple or list, but not to a call of their own.
  std::vector<std::string_view> NamesIn(std::size_t opener, bool first_only) const {
    std::vector<std::string_view> names;
    const std::size_t end = std::min(source_.Closer(opener), opener + kMaxTokensPerCall);
    for (std::size_t i = opener + 1; i < end && names.size() < kMaxNamesPerCall; ++i) {
      if (first_only && source_.IsOperator(i, ",")) {
        break;
      }
      const bool alone = !source_.IsOperator(i - 1, ".") && !source_.IsOperator(i + 1, ".") &&
                         !source_.IsOperator(i + 1, "(") && !source_.IsOperator(i + 1, "=");
      const bool in_dict = source_.IsOperator(opener + 1, "{");
      if (source_.IsName(i) && alone && !in_dict) {
        names.push_back(source_.text(i));
      }
    }
    return names;
  }

  void Report(const Framework& framework, const PythonParameter& parameter) {
    if (framework.package == "typer") {
      ReportTyper(parameter, false);
    } else if (!framework.needs_default || !parameter.default_value.empty()) {
      found_({std::string(framework.spelling), LocalRankSource::kSignature, parameter.line, false});
    }
  }

  // typed-argument-parser: class Args(Tap).
  void ReadTap(const PythonClass& one) {
    bool tap = false;
    for (std::size_t i = one.bases.begin; i < one.bases.end; ++i) {
      tap = tap || source_.text(i) == "Tap" || source_.text(i) == "TypedArgs";
    }
    for (const PythonParameter& field : one.fields) {
      if (tap && field.name == "local_rank") {
        found_({std::string(kLocalRankUnderscore), LocalRankSource::kSignature, field.line, false});
      }
    }
  }

  // A typer application with more than one command has subcommands.
  void ReadTyperCommands() {
    std::map<std::string_view, int> commands;
    for (const PythonFunction& function : source_.functions()) {
      for (const TokenRange decorator : function.decorators) {
        commands[TyperApp(decorator, "command")] += 1;
      }
    }
    for (const PythonFunction& function : source_.functions()) {
      for (const TokenRange decorator : function.decorators) {
        ReadTyperCommand(function, decorator, commands);
      }
    }
  }

  void ReadTyperCommand(const PythonFunction& function, TokenRange decorator,
                        const std::map<std::string_view, int>& commands) {
    const std::string_view app = TyperApp(decorator, "command");
    const bool callback = !TyperApp(decorator, "callback").empty();
    if (app.empty() && !callback) {
      return;
    }
    for (const PythonParameter& parameter : function.parameters) {
      if (parameter.name == "local_rank") {
        ReportTyper(parameter, !callback && commands.at(app) > 1);
      }
    }
  }

  // The name of the application in `app.command()`; empty for any other decorator.
  std::string_view TyperApp(TokenRange decorator, std::string_view method) const {
    const std::size_t at = decorator.begin;
    const bool matches =
        source_.IsName(at) && source_.IsOperator(at + 1, ".") && source_.text(at + 2) == method;
    if (!matches) {
      return {};
    }
    const auto made = source_.OnlyAssignment(source_.text(at));
    return made && Mentions(*made, "Typer") ? source_.text(at) : std::string_view();
  }

  bool Mentions(TokenRange range, std::string_view name) const {
    const std::size_t end = std::min(range.end, range.begin + kMaxTokensPerCall);
    for (std::size_t i = range.begin; i < end; ++i) {
      if (source_.IsName(i) && source_.text(i) == name) {
        return true;
      }
    }
    return false;
  }

  // Options named in the text are declaring_calls' business; an argument is no option.
  void ReportTyper(const PythonParameter& parameter, bool subcommand) {
    const bool option = Mentions(parameter.annotation, "Option");
    const bool argument =
        Mentions(parameter.annotation, "Argument") || Mentions(parameter.default_value, "Argument");
    const bool named = NamesOption(parameter.annotation) || NamesOption(parameter.default_value);
    if (!argument && !named && (option || !parameter.default_value.empty())) {
      found_(
          {std::string(kLocalRankDash), LocalRankSource::kSignature, parameter.line, subcommand});
    }
  }

  bool NamesOption(TokenRange range) const {
    const std::size_t end = std::min(range.end, range.begin + kMaxTokensPerCall);
    for (std::size_t i = range.begin; i < end; ++i) {
      if (source_.IsString(i) && source_.text(i).substr(1, 2) == "--") {
        return true;
      }
    }
    return false;
  }

  const PythonSource& source_;
  const LocalRankFound& found_;
  std::multimap<std::string_view, PythonParameter> owners_;
};

}  // namespace

void FindDeclaringSignatures(const PythonSource& source, const LocalRankFound& found) {
  SignatureRules(source, found).Run();
}

}  // namespace ddprun
