#include "launcher/config/argument_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "rendezvous/base/error.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

// What one word is before its neighbours are known.
struct Word {
  enum class Kind { kPositional, kOption, kUnknownOption, kAmbiguous };
  Kind kind = Kind::kPositional;
  const OptionSpec* spec = nullptr;
  std::string spelling;
  std::optional<std::string> attached;  // The part after `=`, or behind a short option.
  std::vector<std::string> matches;     // kAmbiguous: what it could be short for.
};

// argparse's ^-\d+$|^-\d*\.\d+$: such a word is a value or a script, never an option.
bool LooksLikeNegativeNumber(std::string_view word) {
  const auto digits = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (word.size() < 2 || word[0] != '-') {
    return false;
  }
  word.remove_prefix(1);
  const std::size_t dot = word.find('.');
  if (dot == std::string_view::npos) {
    return digits(word);
  }
  return digits(word.substr(0, dot)) && dot + 1 < word.size() && digits(word.substr(dot + 1));
}

class Scanner {
 public:
  Scanner(const std::vector<std::string>& words, Program program)
      : words_(words), program_(program) {}

  ParsedArguments Run() {
    while (next_ < words_.size() && !parsed_.script && !parsed_.error) {
      Step();
    }
    return std::move(parsed_);
  }

 private:
  void Step() {
    if (words_[next_] == "--") {
      TakeScript(next_ + 1, /*separator_seen=*/true);
      return;
    }
    const Word word = Classify(words_[next_]);
    switch (word.kind) {
      case Word::Kind::kPositional:
        TakeScript(next_, /*separator_seen=*/false);
        return;
      case Word::Kind::kUnknownOption:
        parsed_.unrecognized.push_back(words_[next_++]);
        return;
      case Word::Kind::kAmbiguous:
        parsed_.error = fmt::format("{}: ambiguous option, it could be {}", words_[next_],
                                    Join(word.matches, " or "));
        return;
      case Word::Kind::kOption:
        TakeOption(word);
        return;
    }
  }

  // The script and everything behind it. Only the first `--` of all is special: it is dropped when
  // it stands directly before or directly after the script.
  void TakeScript(std::size_t index, bool separator_seen) {
    next_ = words_.size();
    if (index >= words_.size()) {
      return;
    }
    parsed_.script = words_[index++];
    if (!separator_seen && index < words_.size() && words_[index] == "--") {
      ++index;
    }
    parsed_.script_arguments.assign(words_.begin() + static_cast<std::ptrdiff_t>(index),
                                    words_.end());
  }

  void TakeOption(Word word) {
    ++next_;
    while (word.spec->kind == OptionKind::kFlag && word.attached) {
      if (!SplitShortFlags(word)) {
        parsed_.error =
            fmt::format("{}: takes no value, but '{}' was given", word.spelling, *word.attached);
        return;
      }
    }
    if (word.spec->kind == OptionKind::kFlag) {
      Record(word, "");
    } else if (word.attached) {
      Record(word, *word.attached);
    } else {
      TakeValue(word);
    }
  }

  // `-mr3` is `-m -r3`: records the flag and makes `word` the option behind it.
  bool SplitShortFlags(Word& word) {
    const bool is_short = word.spelling.size() == 2;
    const OptionSpec* rest =
        is_short && !word.attached->empty() ? FindShort(word.attached->front()) : nullptr;
    if (rest == nullptr) {
      return false;
    }
    Record(word, "");
    const std::string tail = word.attached->substr(1);
    word.spec = rest;
    word.spelling = std::string("-") + rest->short_name;
    word.attached = tail.empty() ? std::nullopt : std::optional<std::string>(tail);
    return true;
  }

  void TakeValue(const Word& word) {
    const bool has_value = next_ < words_.size() && words_[next_] != "--" &&
                           Classify(words_[next_]).kind == Word::Kind::kPositional;
    if (!has_value) {
      const bool option_follows = next_ < words_.size() && words_[next_] != "--";
      parsed_.error =
          fmt::format("{0}: expected a value ({1}){2}", word.spelling, word.spec->metavar,
                      option_follows ? fmt::format("; write {}={} if '{}' is meant as the value",
                                                   word.spelling, words_[next_], words_[next_])
                                     : "");
      return;
    }
    Record(word, words_[next_++]);
  }

  void Record(const Word& word, std::string value) {
    parsed_.uses.push_back({word.spec->id, word.spelling, std::move(value)});
  }

  Word Classify(const std::string& word) const {
    if (word.size() < 2 || word[0] != '-') {
      return {};
    }
    if (std::optional<Word> option = word[1] == '-' ? MatchLong(word) : MatchShort(word)) {
      return *std::move(option);
    }
    if (LooksLikeNegativeNumber(word) || word.find(' ') != std::string::npos) {
      return {};
    }
    Word unknown;
    unknown.kind = Word::Kind::kUnknownOption;
    return unknown;
  }

  std::optional<Word> MatchShort(const std::string& word) const {
    const OptionSpec* spec = FindShort(word[1]);
    if (spec == nullptr) {
      return std::nullopt;
    }
    Word option;
    option.kind = Word::Kind::kOption;
    option.spec = spec;
    option.spelling = word.substr(0, 2);
    if (word.size() > 2) {
      option.attached = word.substr(word[2] == '=' ? 3 : 2);
    }
    return option;
  }

  std::optional<Word> MatchLong(const std::string& word) const {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    std::vector<std::pair<const OptionSpec*, std::string>> torch;
    std::vector<std::pair<const OptionSpec*, std::string>> ours;
    for (const OptionSpec& spec : OptionTable()) {
      const std::optional<std::string> spelling = MatchSpelling(spec, name);
      if (spelling && *spelling == name) {
        return MakeLong(spec, *spelling, word, equals);
      }
      if (spelling) {
        (spec.torch ? torch : ours).emplace_back(&spec, *spelling);
      }
    }
    // What torchrun accepts must keep its meaning, so our own options cannot make it ambiguous.
    const auto& candidates = torch.empty() ? ours : torch;
    if (candidates.empty()) {
      return std::nullopt;
    }
    if (candidates.size() == 1) {
      return MakeLong(*candidates[0].first, candidates[0].second, word, equals);
    }
    Word ambiguous;
    ambiguous.kind = Word::Kind::kAmbiguous;
    for (const auto& candidate : candidates) {
      ambiguous.matches.push_back(candidate.second);
    }
    return ambiguous;
  }

  // The spelling of the option that `name` is, or begins.
  std::optional<std::string> MatchSpelling(const OptionSpec& spec, const std::string& name) const {
    if (!ExistsFor(spec, program_)) {
      return std::nullopt;
    }
    for (std::string& spelling : LongSpellings(spec)) {
      if (spelling.compare(0, name.size(), name) == 0) {
        return std::move(spelling);
      }
    }
    return std::nullopt;
  }

  static Word MakeLong(const OptionSpec& spec, const std::string& spelling, const std::string& word,
                       std::size_t equals) {
    Word option;
    option.kind = Word::Kind::kOption;
    option.spec = &spec;
    option.spelling = spelling;
    if (equals != std::string::npos) {
      option.attached = word.substr(equals + 1);
    }
    return option;
  }

  static const OptionSpec* FindShort(char name) {
    for (const OptionSpec& spec : OptionTable()) {
      if (spec.short_name == name && name != 0) {
        return &spec;
      }
    }
    return nullptr;
  }

  const std::vector<std::string>& words_;
  const Program program_;
  std::size_t next_ = 0;
  ParsedArguments parsed_;
};

// The nearest spelling of an option, written with dashes or underscores as the word is.
std::optional<std::string> NearestOption(const std::string& word, Program program) {
  const std::string name = word.substr(0, word.find('='));
  const bool underscores = name.find('_') != std::string::npos;
  std::vector<std::string> names;
  for (const OptionSpec& spec : OptionTable()) {
    if (ExistsFor(spec, program)) {
      const std::vector<std::string> spellings = LongSpellings(spec);
      names.push_back(underscores ? spellings.back() : spellings.front());
    }
  }
  return NearestWord(name, names);
}

}  // namespace

ParsedArguments ParseArguments(const std::vector<std::string>& words, Program program) {
  return Scanner(words, program).Run();
}

std::string DescribeUnrecognized(const std::vector<std::string>& words, Program program) {
  std::string sentence = words.size() == 1 ? fmt::format("{}: no such option", words[0])
                                           : fmt::format("no such options: {}", Join(words, " "));
  if (const std::optional<std::string> nearest = NearestOption(words[0], program)) {
    return fmt::format("{}; did you mean {}?", sentence, *nearest);
  }
  return sentence + "; --help lists all";
}

}  // namespace ddprun
