#include "launcher/config/usage.h"

#include <fmt/format.h>

#include "rendezvous/base/text.h"

#ifndef DDPRUN_COMMIT
#define DDPRUN_COMMIT ""
#endif

namespace ddprun {
namespace {

constexpr std::size_t kIndent = 6;
constexpr std::size_t kWidth = 80;

std::string Wrapped(std::string_view text) {
  std::string wrapped;
  std::size_t column = 0;
  for (const std::string& word : Split(text, ' ')) {
    if (column == 0 || column + 1 + word.size() > kWidth) {
      wrapped += (column == 0 ? "" : "\n") + std::string(kIndent, ' ');
      column = kIndent;
    } else {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
    column += word.size();
  }
  return wrapped + "\n";
}

std::string Names(const OptionSpec& spec) {
  std::string names = spec.short_name == 0 ? "  " : fmt::format("  -{}, ", spec.short_name);
  names += fmt::format("--{}", spec.name);
  return spec.metavar.empty() ? names : fmt::format("{}={}", names, spec.metavar);
}

// "(start-method: spawn, fork or forkserver; default: spawn; PET_START_METHOD)".
std::string Facts(const OptionSpec& spec, Program program) {
  std::vector<std::string> facts;
  if (spec.kind == OptionKind::kChoice) {
    facts.push_back(Join(ChoicesOf(spec), ", "));
  }
  if (const std::string_view value = DefaultFor(spec, program); !value.empty()) {
    facts.push_back(fmt::format("default: {}", value));
  }
  if (std::string variable = VariableOf(spec); !variable.empty()) {
    facts.push_back(std::move(variable));
  }
  return facts.empty() ? "" : fmt::format(" [{}]", Join(facts, "; "));
}

std::string GroupText(OptionGroup group, Program program) {
  std::string text = fmt::format("\n{}:\n", TitleOf(group));
  for (const OptionSpec& spec : OptionTable()) {
    if (spec.group == group && ExistsFor(spec, program)) {
      text += Names(spec) + "\n" + Wrapped(std::string(spec.help) + Facts(spec, program));
    }
  }
  return text;
}

}  // namespace

std::string UsageLine(Program program) {
  return fmt::format("usage: {} [options] script [script arguments]\n", NameOf(program));
}

std::string HelpText(Program program) {
  std::string text = UsageLine(program);
  text +=
      "\nStarts PyTorch distributed training: one worker process per GPU, with the\n"
      "environment that torch.distributed expects, and keeps the job alive.\n";
  for (auto group = OptionGroup::kWorkers; group != OptionGroup::kEnd;
       group = static_cast<OptionGroup>(static_cast<int>(group) + 1)) {
    text += GroupText(group, program);
  }
  text +=
      "\nEverything behind the script goes to the script. Each option may be written\n"
      "with dashes or underscores, as --name=value or --name value, or shortened as\n"
      "long as it stays clear. Command line, variables, config file, defaults: the\n"
      "first that gives a value wins; --print-config shows which.\n";
  return text;
}

std::string VersionText(Program program) {
  const std::string_view commit = DDPRUN_COMMIT;
  return fmt::format("{} {}{}\n", NameOf(program), DDPRUN_VERSION,
                     commit.empty() ? "" : fmt::format(" (commit {})", commit));
}

std::string UsageErrorText(Program program, std::string_view sentence) {
  return UsageLine(program) + ErrorText(program, sentence);
}

std::string ErrorText(Program program, std::string_view sentence) {
  return fmt::format("{}: error: {}\n", NameOf(program), sentence);
}

}  // namespace ddprun
