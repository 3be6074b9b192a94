#include <algorithm>
#include <array>
#include <set>

#include "launcher/script/local_rank_rules.h"

namespace ddprun {
namespace {

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// add_argument, and the helpers that people write around it.
bool IsArgumentAdder(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kEnds = {"argument", "arg", "option", "opt",
                                                            "flag"};
  return name.find("add") != std::string_view::npos &&
         std::any_of(kEnds.begin(), kEnds.end(),
                     [&](std::string_view end) { return EndsWith(name, end); });
}

// The keywords under which helpers take an option's name.
bool NamesAnOption(std::string_view keyword) {
  static constexpr std::array<std::string_view, 8> kKeywords = {
      "name", "names", "flag", "flags", "option", "option_strings", "name_or_flags", "param_decls"};
  return keyword.empty() ||
         std::find(kKeywords.begin(), kKeywords.end(), keyword) != kKeywords.end();
}

class CallRules {
 public:
  CallRules(const PythonSource& source, const LocalRankFound& found)
      : source_(source), found_(found) {
    FindAliases();
  }

  void Apply(const PythonCall& call) {
    const std::string_view name = source_.text(call.name);
    if (IsArgumentAdder(name) || IsAliasedAdder(call.name) || IsConfigArgParseAdder(call.name)) {
      ReportOptions(call, LocalRankSource::kArgparse, OnSubparser(call.name));
    } else if (IsClickOption(call.name)) {
      ReportOptions(call, LocalRankSource::kClick, OnGroupCommand(call.name));
    } else if (StartsWith(name, "DEFINE")) {
      ReportFlag(call);
    } else if (name == "getopt" || name == "gnu_getopt") {
      ReportGetopt(call);
    } else if (name == "docopt") {
      ReportDocopt(call);
    }
  }

 private:
  struct Command {
    TokenRange decorators;
    bool of_group = false;
  };

  // One pass in the file's order: what a name was made from is known before it is used.
  void FindAliases() {
    for (const PythonFunction& function : source_.functions()) {
      ReadCommand(function);
    }
    for (const TokenRange statement : source_.statements()) {
      const bool assigns =
          source_.IsName(statement.begin) && source_.IsOperator(statement.begin + 1, "=");
      if (assigns) {
        ReadAlias(source_.text(statement.begin), TokenRange{statement.begin + 2, statement.end});
      }
    }
  }

  // `add = parser.add_argument`, `p = subparsers.add_parser("train")`, `g =
  // p.add_argument_group()`.
  void ReadAlias(std::string_view name, TokenRange value) {
    if (value.empty()) {
      return;
    }
    const std::size_t last = value.end - 1;
    if (IsArgumentAdder(source_.text(last)) && source_.IsOperator(last - 1, ".")) {
      adders_.insert(name);
    }
    const bool subparser = MakesSubparser(last);
    (subparser ? subparsers_ : other_names_).insert(name);
  }

  // Whether an expression that ends with this closing bracket calls add_parser, or makes a group of
  // such a parser.
  bool MakesSubparser(std::size_t closer) const {
    const std::size_t opener =
        source_.IsOperator(closer, ")") ? source_.OpenerOf(closer) : PythonSource::kNone;
    if (opener == PythonSource::kNone || opener == 0) {
      return false;
    }
    const std::string_view callee = source_.text(opener - 1);
    return callee == "add_parser" ||
           (EndsWith(callee, "_group") && IsSubparser(source_.Receiver(opener - 1)));
  }

  bool IsSubparser(std::string_view name) const {
    return subparsers_.count(name) != 0 && other_names_.count(name) == 0;
  }

  bool OnSubparser(std::size_t name) const {
    const bool chained = name >= 2 && source_.IsOperator(name - 1, ".");
    return chained && (IsSubparser(source_.text(name - 2)) || MakesSubparser(name - 2));
  }

  bool IsAliasedAdder(std::size_t name) const {
    return adders_.count(source_.text(name)) != 0 && !source_.IsOperator(name - 1, ".");
  }

  // ConfigArgParse's short form; anywhere else `add` fills a set.
  bool IsConfigArgParseAdder(std::size_t name) const {
    return source_.text(name) == "add" && source_.Imports("configargparse") &&
           source_.IsOperator(name - 1, ".");
  }

  // click.option, click.Option, typer.Option, and decorators named alike (argh, option groups).
  bool IsClickOption(std::size_t name) const {
    const std::string_view text = source_.text(name);
    const bool click = source_.Imports("click") || source_.Imports("typer");
    const bool decorator = FindCommand(name) != nullptr;
    return ((text == "option" || text == "Option") && (click || decorator)) ||
           ((text == "arg" || text == "argument") && decorator);
  }

  // A function decorated `@cli.command()` where `cli` is itself a function: a click group.
  void ReadCommand(const PythonFunction& function) {
    Command command;
    for (const TokenRange decorator : function.decorators) {
      if (command.decorators.empty()) {
        command.decorators = decorator;
      }
      command.decorators.end = decorator.end;
      const std::size_t opener = LastCallee(decorator);
      const std::string_view callee = source_.text(opener);
      if (callee == "group") {
        groups_.insert(function.name);
      }
      const bool member = callee == "command" || callee == "group";
      command.of_group |= member && groups_.count(source_.Receiver(opener)) != 0;
    }
    if (!command.decorators.empty()) {
      commands_.push_back(command);
    }
  }

  // The token of the last name of a decorator, before its bracket.
  std::size_t LastCallee(TokenRange decorator) const {
    std::size_t at = decorator.begin;
    while (at + 2 < decorator.end && source_.IsOperator(at + 1, ".")) {
      at += 2;
    }
    return at;
  }

  const Command* FindCommand(std::size_t token) const {
    const auto after = std::upper_bound(
        commands_.begin(), commands_.end(), token,
        [](std::size_t at, const Command& command) { return at < command.decorators.begin; });
    if (after == commands_.begin()) {
      return nullptr;
    }
    const Command& command = *std::prev(after);
    return token < command.decorators.end ? &command : nullptr;
  }

  bool OnGroupCommand(std::size_t name) const {
    const Command* command = FindCommand(name);
    return command != nullptr && command->of_group;
  }

  void ReportOptions(const PythonCall& call, LocalRankSource kind, bool subcommand) {
    for (const PythonArgument& argument : source_.Arguments(call.opener)) {
      if (NamesAnOption(argument.keyword)) {
        ReportStrings(argument.value, kind, subcommand);
      }
    }
  }

  // A string, or a list of strings.
  void ReportStrings(TokenRange value, LocalRankSource kind, bool subcommand) {
    const bool list = source_.IsOperator(value.begin, "[") || source_.IsOperator(value.begin, "(");
    if (!list || source_.Closer(value.begin) != value.end - 1) {
      ReportString(value, kind, subcommand);
      return;
    }
    for (const TokenRange item : source_.Items(value.begin)) {
      ReportString(item, kind, subcommand);
    }
  }

  void ReportString(TokenRange value, LocalRankSource kind, bool subcommand) {
    for (const std::string& option : source_.StringValues(value)) {
      if (const auto spelling = OptionSpelling(option)) {
        found_({*spelling, kind, source_.tokens()[value.begin].line, subcommand});
      }
    }
  }

  // DEFINE_integer("local_rank", ...): the first argument is the name without dashes.
  void ReportFlag(const PythonCall& call) {
    const std::vector<PythonArgument> arguments = source_.Arguments(call.opener);
    for (const PythonArgument& argument : arguments) {
      if (argument.keyword != "name" && &argument != &arguments.front()) {
        continue;
      }
      for (const std::string& name : source_.StringValues(argument.value)) {
        if (const auto spelling = OptionSpelling("--" + name)) {
          found_({*spelling, LocalRankSource::kFlags, source_.tokens()[call.name].line, false});
        }
      }
    }
  }

  // getopt(argv, "x:", ["local_rank="]): the third argument, or one called longopts.
  void ReportGetopt(const PythonCall& call) {
    const std::vector<PythonArgument> arguments = source_.Arguments(call.opener);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const bool positional = arguments[i].keyword.empty() && i == 2;
      if (positional || arguments[i].keyword == "longopts") {
        ReportLongOptions(arguments[i].value);
      }
    }
  }

  void ReportLongOptions(TokenRange value) {
    if (value.size() == 1 && getopt_names_.insert(source_.text(value.begin)).second) {
      value = source_.OnlyAssignment(source_.text(value.begin)).value_or(value);
    }
    if (!source_.IsOperator(value.begin, "[") && !source_.IsOperator(value.begin, "(")) {
      return;
    }
    for (const TokenRange item : source_.Items(value.begin)) {
      for (const std::string& name : source_.StringValues(item)) {
        const std::string_view bare = std::string_view(name).substr(0, name.find('='));
        if (const auto spelling = OptionSpelling("--" + std::string(bare))) {
          found_({*spelling, LocalRankSource::kGetopt, source_.tokens()[item.begin].line, false});
        }
      }
    }
  }

  // docopt(__doc__) or docopt(TEXT). One text is enough, and keeps a hostile file cheap.
  void ReportDocopt(const PythonCall& call) {
    const std::vector<PythonArgument> arguments = source_.Arguments(call.opener);
    if (arguments.empty() || docopt_read_) {
      return;
    }
    docopt_read_ = true;
    const TokenRange value = arguments.front().value;
    const std::optional<std::string> usage =
        source_.text(value.begin) == "__doc__" ? source_.docstring() : source_.LongString(value);
    for (const std::string_view spelling : {kLocalRankUnderscore, kLocalRankDash}) {
      if (usage && HoldsWord(*usage, spelling)) {
        found_({std::string(spelling), LocalRankSource::kDocopt, source_.tokens()[call.name].line,
                false});
      }
    }
  }

  static bool HoldsWord(std::string_view text, std::string_view word) {
    static constexpr std::string_view kWordChars =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    for (std::size_t at = text.find(word); at != std::string_view::npos;
         at = text.find(word, at + 1)) {
      const std::string_view before = text.substr(at == 0 ? 0 : at - 1, at == 0 ? 0 : 1);
      const std::string_view after = text.substr(at + word.size(), 1);
      if (before.find_first_of(kWordChars) == std::string_view::npos &&
          after.find_first_of(kWordChars) == std::string_view::npos) {
        return true;
      }
    }
    return false;
  }

  const PythonSource& source_;
  const LocalRankFound& found_;
  std::set<std::string_view> adders_;
  std::set<std::string_view> subparsers_;
  std::set<std::string_view> other_names_;  // Assigned something that is no subparser.
  std::set<std::string_view> groups_;
  std::set<std::string_view> getopt_names_;
  std::vector<Command> commands_;  // In the file's order.
  bool docopt_read_ = false;
};

}  // namespace

std::optional<std::string> OptionSpelling(std::string_view option) {
  const bool known = option == kLocalRankUnderscore || option == kLocalRankDash;
  return known ? std::optional<std::string>(option) : std::nullopt;
}

void FindDeclaringCalls(const PythonSource& source, const LocalRankFound& found) {
  CallRules rules(source, found);
  for (const PythonCall& call : source.calls()) {
    rules.Apply(call);
  }
}

}  // namespace ddprun
