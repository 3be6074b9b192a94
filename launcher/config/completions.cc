#include "launcher/config/completions.h"

#include <fmt/format.h>

#include "launcher/config/option_table.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

// --use-env is offered only where every program of the script has it.
std::vector<const OptionSpec*> OfferedOptions(const std::vector<std::string>& programs) {
  std::vector<const OptionSpec*> offered;
  for (const OptionSpec& spec : OptionTable()) {
    bool everywhere = true;
    for (const std::string& program : programs) {
      everywhere = everywhere && ExistsFor(spec, ProgramOf(program));
    }
    if (everywhere) {
      offered.push_back(&spec);
    }
  }
  return offered;
}

bool TakesPath(const OptionSpec& spec) {
  return spec.id == OptionId::kPython || spec.id == OptionId::kConfig ||
         spec.id == OptionId::kLogDir;
}

std::string WithSpaces(std::string_view choices) {
  return Join(Split(choices, '|'), " ");
}

// The names of one option as they stand before a separate value: "-r|--redirects".
std::string NamePattern(const OptionSpec& spec, std::string_view separator) {
  std::vector<std::string> names = LongSpellings(spec);
  if (spec.short_name != 0) {
    names.push_back(fmt::format("-{}", spec.short_name));
  }
  return Join(names, separator);
}

std::string ValueNames(const std::vector<const OptionSpec*>& options, std::string_view separator) {
  std::vector<std::string> names;
  for (const OptionSpec* spec : options) {
    if (spec->kind != OptionKind::kFlag) {
      names.push_back(NamePattern(*spec, separator));
    }
  }
  return Join(names, separator);
}

// ---- bash ----

std::string BashValueCases(const std::vector<const OptionSpec*>& options) {
  std::string cases;
  for (const OptionSpec* spec : options) {
    if (spec->kind == OptionKind::kFlag) {
      continue;
    }
    std::string action = "COMPREPLY=()";
    if (!spec->choices.empty()) {
      action = fmt::format("mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")",
                           WithSpaces(spec->choices));
    } else if (TakesPath(*spec)) {
      action = fmt::format("mapfile -t COMPREPLY < <(compgen -{} -- \"$cur\")",
                           spec->id == OptionId::kLogDir ? "d" : "f");
    }
    cases +=
        fmt::format("    {})\n      {}\n      return\n      ;;\n", NamePattern(*spec, "|"), action);
  }
  return cases;
}

std::string BashScript(const std::vector<std::string>& programs) {
  const std::vector<const OptionSpec*> options = OfferedOptions(programs);
  std::vector<std::string> names;
  for (const OptionSpec* spec : options) {
    names.push_back(fmt::format("--{}{}", spec->name, spec->kind == OptionKind::kFlag ? "" : "="));
  }
  const std::string function = fmt::format("_{}_complete", programs.front());
  std::string identifier = function;
  for (char& c : identifier) {
    c = c == '-' ? '_' : c;
  }
  std::string script = fmt::format("# bash completion for {}\n", Join(programs, ", "));
  script += identifier + "() {\n";
  script +=
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} word i\n"
      "  # Readline splits at '=': --name=value arrives as three words.\n"
      "  if [[ $cur == = ]]; then\n"
      "    cur=\n"
      "  elif [[ $prev == = ]] && ((COMP_CWORD > 1)); then\n"
      "    prev=${COMP_WORDS[COMP_CWORD-2]}\n"
      "  fi\n"
      "  # Behind the script everything is the script's own.\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    word=${COMP_WORDS[i]}\n"
      "    case $word in\n";
  script += fmt::format("    {})\n", ValueNames(options, "|"));
  script +=
      "      ((i++))\n"
      "      [[ ${COMP_WORDS[i]} == = ]] && ((i++))\n"
      "      ;;\n"
      "    -*) ;;\n"
      "    *)\n"
      "      mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
      "      return\n"
      "      ;;\n"
      "    esac\n"
      "  done\n"
      "  case $prev in\n";
  script += BashValueCases(options);
  script +=
      "  esac\n"
      "  if [[ $cur == -* ]]; then\n";
  script +=
      fmt::format("    mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")\n", Join(names, " "));
  script +=
      "    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace\n"
      "  else\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
      "  fi\n"
      "}\n";
  return script + fmt::format("complete -o filenames -F {} {}\n", identifier, Join(programs, " "));
}

// ---- zsh ----

std::string ZshEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') {
      escaped.push_back('\\');
    }
    escaped.push_back(c);
  }
  return escaped;
}

std::string ZshAction(const OptionSpec& spec) {
  if (spec.kind == OptionKind::kFlag) {
    return "";
  }
  std::string action = " ";
  if (!spec.choices.empty()) {
    action = fmt::format("({})", ZshEscaped(WithSpaces(spec.choices)));
  } else if (TakesPath(spec)) {
    action = spec.id == OptionId::kLogDir ? "_directories" : "_files";
  }
  return fmt::format(":{}:{}", ZshEscaped(spec.metavar), action);
}

std::string ZshScript(const std::vector<std::string>& programs) {
  std::string script = fmt::format("#compdef {}\n\n_arguments -s -S \\\n", Join(programs, " "));
  for (const OptionSpec* spec : OfferedOptions(programs)) {
    const bool flag = spec->kind == OptionKind::kFlag;
    const std::string rest = fmt::format("[{}]{}'", ZshEscaped(spec->help), ZshAction(*spec));
    if (spec->short_name != 0) {
      script += fmt::format("  '-{}{}{} \\\n", spec->short_name, flag ? "" : "+", rest);
    }
    script += fmt::format("  '--{}{}{} \\\n", spec->name, flag ? "" : "=", rest);
  }
  return script + "  '(-)1:script:_files' \\\n  '*::script arguments:_files'\n";
}

// ---- fish ----

std::string FishQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') {
      quoted.push_back('\\');
    }
    quoted.push_back(c);
  }
  return quoted + "'";
}

std::string FishScript(const std::vector<std::string>& programs) {
  const std::vector<const OptionSpec*> options = OfferedOptions(programs);
  std::string script = fmt::format("# fish completion for {}\n", Join(programs, ", "));
  script +=
      "function __ddprun_before_script\n"
      "  set -l words (commandline -opc)\n"
      "  set -l skip 0\n"
      "  for word in $words[2..-1]\n"
      "    if test $skip -eq 1\n"
      "      set skip 0\n"
      "      continue\n"
      "    end\n"
      "    switch $word\n";
  script += fmt::format("      case {}\n", ValueNames(options, " "));
  script +=
      "        set skip 1\n"
      "      case '-*'\n"
      "      case '*'\n"
      "        return 1\n"
      "    end\n"
      "  end\n"
      "  return 0\n"
      "end\n";
  for (const std::string& program : programs) {
    for (const OptionSpec* spec : options) {
      script += fmt::format("complete -c {} -n __ddprun_before_script -l {}", program, spec->name);
      script += spec->short_name != 0 ? fmt::format(" -s {}", spec->short_name) : "";
      if (spec->kind != OptionKind::kFlag) {
        script += TakesPath(*spec) ? " -r -F" : " -x";
      }
      if (!spec->choices.empty()) {
        script += fmt::format(" -a {}", FishQuoted(WithSpaces(spec->choices)));
      }
      script += fmt::format(" -d {}\n", FishQuoted(spec->help));
    }
  }
  return script;
}

// ---- tcsh ----

// tcsh has no way to stop at the script; options are offered where a word begins with a dash.
std::string TcshScript(const std::vector<std::string>& programs) {
  const std::vector<const OptionSpec*> options = OfferedOptions(programs);
  std::vector<std::string> names;
  std::string values;
  for (const OptionSpec* spec : options) {
    names.emplace_back(spec->name);
    if (spec->kind != OptionKind::kFlag) {
      const std::string list = spec->choices.empty() ? (TakesPath(*spec) ? "f" : "x:value")
                                                     : "(" + WithSpaces(spec->choices) + ")";
      // A colon inside a list ends the field, so '@' separates the fields.
      values += fmt::format(" 'n@--{}@{}@'", spec->name, list);
    }
  }
  std::string script;
  for (const std::string& program : programs) {
    script +=
        fmt::format("complete {}{} 'c@--@({})@' 'n@*@f@'\n", program, values, Join(names, " "));
  }
  return script;
}

}  // namespace

Shell ShellOf(std::string_view name) {
  if (name == "zsh") {
    return Shell::kZsh;
  }
  if (name == "fish") {
    return Shell::kFish;
  }
  return name == "tcsh" ? Shell::kTcsh : Shell::kBash;
}

std::string CompletionScript(Shell shell, const std::vector<std::string>& programs) {
  switch (shell) {
    case Shell::kZsh:
      return ZshScript(programs);
    case Shell::kFish:
      return FishScript(programs);
    case Shell::kTcsh:
      return TcshScript(programs);
    case Shell::kBash:
      break;
  }
  return BashScript(programs);
}

}  // namespace ddprun
