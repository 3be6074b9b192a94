#include "launcher/script/rejected_local_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

// How argument parsers start their complaint, lower case.
constexpr std::array<std::string_view, 11> kRefusals = {
    "unrecognized argument",      // argparse
    "unrecognized option",        // tyro
    "no such option",             // click, typer
    "unknown command line flag",  // absl
    "could not consume arg",      // fire
    "not used by the hfargumentparser",
    "not recognized",  // getopt: option --local_rank not recognized
    "unknown option",
    "unknown argument",
    "ambiguous option",           // argparse: the beginning of two other options
    "ignored explicit argument",  // argparse: an option without a value
};
constexpr std::array<std::string_view, 3> kDemands = {"arguments are required", "missing option",
                                                      "must have a value"};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  }
  return lower;
}

template <std::size_t N>
bool HoldsOneOf(const std::string& line, const std::array<std::string_view, N>& texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](std::string_view text) { return line.find(text) != std::string::npos; });
}

// The spelling that a line names first as a whole word.
std::optional<std::string> SpellingNamed(const std::string& line) {
  static constexpr std::string_view kMore = "abcdefghijklmnopqrstuvwxyz0123456789_-";
  for (std::size_t at = line.find("local"); at != std::string::npos;
       at = line.find("local", at + 1)) {
    for (const std::string_view spelling : {kLocalRankUnderscore, kLocalRankDash}) {
      const std::string_view rest = std::string_view(line).substr(at);
      const std::string_view name = spelling.substr(2);
      const bool longer = rest.substr(std::min(name.size(), rest.size()), 1).find_first_of(kMore) !=
                          std::string_view::npos;
      if (rest.substr(0, name.size()) == name && !longer) {
        return std::string(spelling);
      }
    }
  }
  return std::nullopt;
}

struct Complaint {
  std::string spelling;
  bool missing = false;  // The parser demands the argument instead of refusing it.
};

std::optional<Complaint> FindComplaint(std::string_view stderr_tail) {
  std::optional<Complaint> complaint;
  for (const std::string& text : Split(stderr_tail, '\n')) {
    const std::string line = Lower(text);
    const bool refused = HoldsOneOf(line, kRefusals);
    const bool missing = !refused && HoldsOneOf(line, kDemands);
    if (!refused && !missing) {
      continue;
    }
    if (auto spelling = SpellingNamed(line)) {
      complaint = Complaint{std::move(*spelling), missing};
    }
  }
  return complaint;
}

// Both spellings of the option, with its value in the same word or in the next.
void RemoveOption(std::vector<std::string>& words, std::size_t from, std::size_t to,
                  std::string_view dashed) {
  std::string underscored(dashed);
  std::replace(underscored.begin() + 2, underscored.end(), '-', '_');
  for (std::size_t i = from; i < std::min(to, words.size());) {
    const std::string name = words[i].substr(0, words[i].find('='));
    const bool matches = name == dashed || name == underscored;
    const bool separate = matches && name.size() == words[i].size() && i + 1 < to;
    const auto at = words.begin() + static_cast<std::ptrdiff_t>(i);
    if (matches) {
      words.erase(at, at + (separate ? 2 : 1));
      to -= separate ? 2U : 1U;
    } else {
      ++i;
    }
  }
}

// The command with one option of the launcher's set anew.
std::string With(const LaunchedCommand& command, std::string_view option) {
  std::vector<std::string> words = command.words;
  RemoveOption(words, 1, command.script_at, "--local-rank-arg");
  words.insert(words.begin() + (words.empty() ? 0 : 1), std::string(option));
  return ShellJoin(words);
}

std::string Always(const LaunchedCommand& command, std::string_view spelling) {
  return With(command, fmt::format("--local-rank-arg=always:{}", spelling));
}

std::string Never(const LaunchedCommand& command) {
  const bool launch = command.program == LocalRankProgram::kLaunch;
  return With(command, launch ? "--use-env" : "--local-rank-arg=never");
}

// The user gave the argument: the script's words without it.
std::string WithoutUsersArgument(const LaunchedCommand& command) {
  std::vector<std::string> words = command.words;
  const std::size_t first = std::min(words.size(), command.script_at + 1);
  RemoveOption(words, first, words.size(), kLocalRankDash);
  return ShellJoin(words);
}

std::string Name(const LaunchedCommand& command) {
  return command.script_at < command.words.size() ? command.words[command.script_at] : "the script";
}

std::string ExplainRefused(const LaunchedCommand& command, const Complaint& complaint) {
  const std::string name = Name(command);
  const std::string other(complaint.spelling == kLocalRankDash ? kLocalRankUnderscore
                                                               : kLocalRankDash);
  if (!command.local_rank_argument) {
    return fmt::format(
        "{} does not know {}, which is among its own arguments; leave it out, LOCAL_RANK is in the "
        "environment: {}",
        name, complaint.spelling, WithoutUsersArgument(command));
  }
  if (const LocalRankDeclaration* declared = command.scan.Find(other)) {
    return fmt::format("{} does not know {}, which the launcher added, but {}; run: {}", name,
                       complaint.spelling, Describe(name, *declared), Always(command, other));
  }
  return fmt::format(
      "{} does not know {}, which the launcher added; LOCAL_RANK is in the environment, run: {}",
      name, complaint.spelling, Never(command));
}

}  // namespace

std::optional<std::string> ExplainRejectedLocalRank(std::string_view stderr_tail,
                                                    const LaunchedCommand& command) {
  const std::optional<Complaint> complaint = FindComplaint(stderr_tail);
  if (!complaint) {
    return std::nullopt;
  }
  if (!complaint->missing) {
    return ExplainRefused(command, *complaint);
  }
  return fmt::format("{} demands {}, which it was not given; run: {}", Name(command),
                     complaint->spelling, Always(command, complaint->spelling));
}

std::string ShellJoin(const std::vector<std::string>& words) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  std::vector<std::string> quoted;
  for (const std::string& word : words) {
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      quoted.push_back(word);
      continue;
    }
    std::string text = "'";
    for (const char c : word) {
      text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    quoted.push_back(text + "'");
  }
  return Join(quoted, " ");
}

}  // namespace ddprun
