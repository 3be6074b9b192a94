#include "launcher/config/manual.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "launcher/config/option_table.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

std::vector<OptionGroup> Groups() {
  std::vector<OptionGroup> groups;
  for (int i = 0; i < static_cast<int>(OptionGroup::kEnd); ++i) {
    groups.push_back(static_cast<OptionGroup>(i));
  }
  return groups;
}

// "one per GPU (torchrun, ddprun-launch: 1)".
std::string DefaultText(const OptionSpec& spec) {
  const std::string_view ours = DefaultFor(spec, Program::kDdprun);
  std::string text = ours.empty() ? "unset" : std::string(ours);
  const std::string_view torchrun = DefaultFor(spec, Program::kTorchrun);
  const std::string_view launch = DefaultFor(spec, Program::kLaunch);
  if (torchrun == launch && torchrun != ours) {
    return text + fmt::format(" (torchrun, ddprun-launch: {})", torchrun);
  }
  if (torchrun != ours) {
    text += fmt::format(" (torchrun: {})", torchrun);
  }
  if (launch != ours) {
    text += fmt::format(" (ddprun-launch: {})", launch);
  }
  return text;
}

// ---- man page ----

std::string Roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if (c == '\'') {
      escaped += "\\(aq";
    } else {
      escaped.push_back(c);
    }
  }
  return escaped.starts_with('.') ? "\\&" + escaped : escaped;
}

std::string ManualOption(const OptionSpec& spec) {
  std::string text = ".TP\n";
  text += spec.short_name != 0 ? fmt::format(".BR \\-{} \", \" ", spec.short_name) : ".BR ";
  text += Roff(fmt::format("--{}", spec.name));
  text += spec.metavar.empty() ? "\n" : fmt::format("\\fR=\\fI{}\n", Roff(spec.metavar));
  text += Roff(spec.help) + "\n";
  if (spec.kind == OptionKind::kChoice) {
    text += Roff(fmt::format("One of {}.", Join(ChoicesOf(spec), ", "))) + "\n";
  }
  if (spec.kind != OptionKind::kFlag) {
    text += Roff(fmt::format("Default: {}.", DefaultText(spec))) + "\n";
  }
  if (const std::string variable = VariableOf(spec); !variable.empty()) {
    text += Roff(fmt::format("Variable: {}.", variable)) + "\n";
  }
  return text;
}

constexpr std::string_view kManualHead =
    ".\\\" Made by ddprun-docgen from the option table.\n"
    ".TH DDPRUN 1 \"\" \"ddprun " DDPRUN_VERSION
    "\" \"User Commands\"\n"
    ".SH NAME\n"
    "ddprun, ddprun\\-launch \\- start PyTorch distributed training\n"
    ".SH SYNOPSIS\n"
    ".B ddprun\n[\\fIoptions\\fR] \\fIscript\\fR [\\fIscript arguments\\fR]\n.br\n"
    ".B ddprun\\-launch\n[\\fIoptions\\fR] \\fIscript\\fR [\\fIscript arguments\\fR]\n"
    ".SH DESCRIPTION\n"
    "Starts one worker process per GPU with the environment that torch.distributed expects, and\n"
    "keeps the job alive. The command line is that of torchrun; everything behind the script goes\n"
    "to the script. Called as\n.B ddprun\\-launch\nit behaves as python \\-m\n"
    "torch.distributed.launch, called as\n.B torchrun\nit has that program\\(aqs defaults.\n"
    ".PP\n"
    "Each option may be written with dashes or underscores, as \\-\\-name=value or \\-\\-name "
    "value,\n"
    "or shortened as long as it stays clear. The command line wins over variables, variables over\n"
    "the config file, and that over the defaults.\n"
    ".SH OPTIONS\n";

constexpr std::string_view kManualTail =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\nAll workers of this node ended with 0, or a text that was asked for was printed.\n"
    ".TP\n.B 1\nA worker failed, a handled signal came, or the options cannot be carried out.\n"
    ".TP\n.B 2\nThe command line, a variable or the config file cannot be read.\n"
    ".SH ENVIRONMENT\n"
    "The variables that are named with the options give their defaults. Of a flag the variable is "
    "a\n"
    "whole number, 0 for off. A variable that is set to nothing is set. Further variables:\n"
    ".TP\n.B PYTHON_EXEC\nInterpreter of the workers.\n"
    ".TP\n.B OMP_NUM_THREADS\nPassed on as it is; see \\-\\-omp\\-num\\-threads.\n"
    ".TP\n.B LOGLEVEL\nLevel of the launcher\\(aqs own messages.\n"
    ".TP\n.B TMPDIR, TEMP, TMP\nWhere temporary log folders are made.\n"
    ".TP\n.B TORCH_ELASTIC_SHUTDOWN_TIMEOUT\nSee \\-\\-shutdown\\-timeout.\n"
    ".TP\n.B TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE\nSee \\-\\-log\\-line\\-prefix\\-template.\n"
    ".TP\n.B TORCHELASTIC_ERROR_FILE\nWhere the launcher writes its own error record.\n"
    ".TP\n.B TORCHELASTIC_ENABLE_FILE_TIMER, TORCHELASTIC_TIMER_FILE\nThe file timer and its "
    "pipe.\n"
    ".TP\n.B TORCH_DISABLE_SHARE_RDZV_TCP_STORE\nIf 1, the workers make their own store.\n"
    ".SH FILES\n"
    "A file for \\-\\-config is TOML: one name = value per line with the names of the options,\n"
    "arrays for lists, true or false for flags. The tables [rdzv\\-conf] and [store\\-conf] hold\n"
    "their keys. Strings stay on one line and know no escapes.\n";

// ---- markdown ----

std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    cell += c == '|' ? "\\|" : std::string(1, c);
  }
  return cell;
}

std::string Code(std::string_view text) {
  return text.empty() ? "" : fmt::format("`{}`", Cell(text));
}

std::string ValuesText(const OptionSpec& spec) {
  switch (spec.kind) {
    case OptionKind::kFlag:
      return "flag";
    case OptionKind::kInteger:
      return "integer";
    case OptionKind::kFloat:
      return "number";
    case OptionKind::kChoice:
      return Code(Join(ChoicesOf(spec), ", "));
    default:
      return Code(spec.metavar);
  }
}

std::string MarkdownRow(const OptionSpec& spec) {
  const std::string short_name =
      spec.short_name != 0 ? fmt::format("`-{}`, ", spec.short_name) : std::string();
  const bool flag = spec.kind == OptionKind::kFlag;
  return fmt::format("| {}`--{}` | {} | {} | {} | {} | {} |\n", short_name, spec.name,
                     ValuesText(spec), flag ? "off" : Cell(DefaultText(spec)),
                     Code(VariableOf(spec)), spec.torch ? "torchrun's" : "ours", Cell(spec.help));
}

}  // namespace

std::string ManualPage() {
  std::string page(kManualHead);
  for (const OptionGroup group : Groups()) {
    page += fmt::format(".SS {}\n", TitleOf(group));
    for (const OptionSpec& spec : OptionTable()) {
      page += spec.group == group ? ManualOption(spec) : "";
    }
  }
  return page + std::string(kManualTail);
}

std::string OptionsMarkdown() {
  std::string text =
      "# Options\n\n"
      "Made by `ddprun-docgen markdown` from the option table; do not edit. Names may be written "
      "with\n"
      "dashes or underscores. The command line wins over the variable, the variable over the "
      "config\n"
      "file, and that over the default. `torchrun's` options follow torch 2.15.0.\n";
  for (const OptionGroup group : Groups()) {
    text += fmt::format("\n## {}\n\n| option | value | default | variable | whose | meaning |\n",
                        TitleOf(group));
    text += "| --- | --- | --- | --- | --- | --- |\n";
    for (const OptionSpec& spec : OptionTable()) {
      text += spec.group == group ? MarkdownRow(spec) : "";
    }
  }
  return text;
}

}  // namespace ddprun
