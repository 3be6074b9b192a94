#include <algorithm>
#include <array>
#include <set>

#include "launcher/script/local_rank_rules.h"

namespace ddprun {
namespace {

// How far from a string its comparison's other side is read.
constexpr std::size_t kWindow = 40;
constexpr int kMaxContainers = 3;

template <std::size_t N>
bool IsOneOf(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// Words and marks behind which another expression begins.
bool EndsExpression(std::string_view text) {
  static constexpr std::array<std::string_view, 17> kEnds = {
      "case", "if", "elif", "while", "and",    "or",  "not", "else", "return",
      ",",    ":",  "=",    ":=",    "assert", "for", "in",  ";"};
  return IsOneOf(text, kEnds);
}

// The spellings that a text compared with a command-line word stands for: the argument alone, with
// its `=`, without dashes, or as a regular expression for both.
std::vector<std::string> SpellingsIn(std::string_view text) {
  const std::size_t start = text.find_first_not_of("^-");
  text.remove_prefix(std::min(start, text.size()));
  if (text.substr(0, 5) != "local") {
    return {};
  }
  text.remove_prefix(5);
  std::vector<std::string> spellings;
  const auto take = [&](std::string_view separator, std::initializer_list<std::string_view> what) {
    if (spellings.empty() && text.substr(0, separator.size()) == separator) {
      spellings.assign(what.begin(), what.end());
      text.remove_prefix(separator.size());
    }
  };
  take("_", {kLocalRankUnderscore});
  take("-", {kLocalRankDash});
  take("[-_]", {kLocalRankDash, kLocalRankUnderscore});
  take("[_-]", {kLocalRankDash, kLocalRankUnderscore});
  take("[_\\-]", {kLocalRankDash, kLocalRankUnderscore});
  const std::string_view after = text.substr(std::min<std::size_t>(4, text.size()), 1);
  const bool whole =
      text.substr(0, 4) == "rank" &&
      after.find_first_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
  return whole ? spellings : std::vector<std::string>{};
}

class ArgvRules {
 public:
  ArgvRules(const PythonSource& source, const LocalRankFound& found)
      : source_(source), found_(found) {
    for (const TokenRange statement : source.statements()) {
      FollowAssignment(statement);
      FollowLoops(statement);
      matches_argv_ = matches_argv_ || (source.text(statement.begin) == "match" &&
                                        IsArgv(TokenRange{statement.begin, statement.end}));
    }
  }

  void Run() {
    for (std::size_t i = 0; i < source_.size(); ++i) {
      if (source_.IsString(i)) {
        i = ReadStrings(i);
      }
    }
  }

 private:
  // Whether sys.argv, or a name that holds some of it, occurs near the start of the range.
  bool IsArgv(TokenRange range) const {
    const std::size_t end = std::min(range.end, range.begin + kWindow);
    for (std::size_t i = range.begin; i < end; ++i) {
      if (source_.IsName(i) && IsArgvName(i)) {
        return true;
      }
    }
    return false;
  }

  bool IsArgvName(std::size_t at) const {
    const std::string_view name = source_.text(at);
    const bool member = at > 0 && source_.IsOperator(at - 1, ".");
    return name == "argv" || (!member && names_.count(name) != 0);
  }

  // What a parser makes of argv is no longer argv.
  bool IsParsed(TokenRange range) const {
    const std::size_t end = std::min(range.end, range.begin + kWindow);
    for (std::size_t i = range.begin; i < end; ++i) {
      const std::string_view name = source_.text(i);
      const bool call = source_.IsOperator(i + 1, "(");
      if (call && (name.find("parse") != std::string_view::npos || name == "docopt" ||
                   name.find("getopt") != std::string_view::npos)) {
        return true;
      }
    }
    return false;
  }

  // `args = sys.argv[1:]`, `key, value = arg.split("=")`.
  void FollowAssignment(TokenRange statement) {
    std::size_t at = statement.begin;
    std::vector<std::string_view> targets;
    while (source_.IsName(at) && at < statement.end) {
      targets.push_back(source_.text(at));
      at += source_.IsOperator(at + 1, ",") ? 2U : 1U;
    }
    const TokenRange value{at + 1, statement.end};
    if (source_.IsOperator(at, "=") && IsArgv(value) && !IsParsed(value)) {
      names_.insert(targets.begin(), targets.end());
    }
  }

  // `for arg in sys.argv`, `for i, arg in enumerate(argv)`, also in a comprehension.
  void FollowLoops(TokenRange statement) {
    for (std::size_t i = statement.begin; i < statement.end; ++i) {
      if (source_.text(i) != "for" || !source_.IsName(i)) {
        continue;
      }
      std::vector<std::string_view> targets;
      std::size_t in = i + 1;
      const std::size_t end = std::min(statement.end, i + kWindow);
      for (; in < end && source_.text(in) != "in"; ++in) {
        if (source_.IsName(in)) {
          targets.push_back(source_.text(in));
        }
      }
      if (IsArgv(RightSide(in))) {
        names_.insert(targets.begin(), targets.end());
      }
    }
  }

  // The expression behind an operator, up to the next one or the end of its brackets.
  TokenRange RightSide(std::size_t op) const {
    TokenRange side{op + 1, op + 1};
    int depth = 0;
    while (side.end < source_.size() && side.size() < kWindow) {
      const std::string_view text = source_.text(side.end);
      if (source_.tokens()[side.end].kind == PythonTokenKind::kOperator) {
        depth += text == "(" || text == "[" || text == "{" ? 1 : 0;
        depth -= text == ")" || text == "]" || text == "}" ? 1 : 0;
      }
      const bool newline = source_.tokens()[side.end].kind == PythonTokenKind::kNewline;
      if (depth < 0 || newline || (depth == 0 && EndsExpression(text))) {
        break;
      }
      ++side.end;
    }
    return side;
  }

  // The expression in front of an operator.
  TokenRange LeftSide(std::size_t op) const {
    TokenRange side{op, op};
    int depth = 0;
    while (side.begin > 0 && side.size() < kWindow) {
      const std::size_t at = side.begin - 1;
      const std::string_view text = source_.text(at);
      if (source_.tokens()[at].kind == PythonTokenKind::kOperator) {
        depth -= text == "(" || text == "[" || text == "{" ? 1 : 0;
        depth += text == ")" || text == "]" || text == "}" ? 1 : 0;
      }
      const bool newline = source_.tokens()[at].kind == PythonTokenKind::kNewline;
      if (depth < 0 || newline || (depth == 0 && EndsExpression(text))) {
        break;
      }
      side.begin = at;
    }
    return side;
  }

  // Reads a run of adjacent strings; the index of its last one.
  std::size_t ReadStrings(std::size_t first) {
    std::size_t last = first;
    bool mentions = false;
    std::string value;
    while (source_.IsString(last)) {
      mentions = mentions || source_.text(last).find("local") != std::string_view::npos;
      ++last;
    }
    if (!mentions) {
      return last - 1;
    }
    for (std::size_t i = first; i < last; ++i) {
      const PythonString part = DecodePythonString(source_.text(i));
      value += part.has_fields || part.bytes ? "" : part.value;
    }
    const std::vector<std::string> spellings = SpellingsIn(value);
    if (!spellings.empty() && IsLook(first, last)) {
      for (const std::string& spelling : spellings) {
        found_({spelling, LocalRankSource::kArgv, source_.tokens()[first].line, false});
      }
    }
    return last - 1;
  }

  // Whether the strings [first, last) are compared with a word of argv, also as one of several in a
  // list or tuple.
  bool IsLook(std::size_t first, std::size_t last) const {
    for (int level = 0; level < kMaxContainers; ++level) {
      if (IsCompared(first, last)) {
        return true;
      }
      const std::size_t opener = source_.Enclosing(first);
      if (opener == PythonSource::kNone) {
        return IsMatchedCase(first);
      }
      const bool call =
          opener > 0 && (source_.IsName(opener - 1) || source_.IsOperator(opener - 1, ")") ||
                         source_.IsOperator(opener - 1, "]"));
      if (call && !EndsExpression(source_.text(opener - 1))) {
        return source_.IsOperator(opener, "(") && IsLookingCall(opener);
      }
      first = opener;
      last = std::min(source_.Closer(opener) + 1, source_.size());
    }
    return false;
  }

  bool IsCompared(std::size_t first, std::size_t last) const {
    static constexpr std::array<std::string_view, 3> kComparisons = {"==", "!=", "in"};
    const std::string_view behind = source_.text(last);
    const bool negated = behind == "not" && source_.text(last + 1) == "in";
    if (negated || IsOneOf(behind, kComparisons)) {
      return IsArgv(RightSide(negated ? last + 1 : last));
    }
    if (first == 0 || !IsOneOf(source_.text(first - 1), kComparisons)) {
      return false;
    }
    const bool not_in = first > 1 && source_.text(first - 2) == "not";
    return IsArgv(LeftSide(not_in ? first - 2 : first - 1));
  }

  // arg.startswith("--local_rank="), sys.argv.index("--local_rank"), re.match("--local_rank", arg).
  bool IsLookingCall(std::size_t opener) const {
    static constexpr std::array<std::string_view, 8> kMethods = {
        "startswith", "index", "count", "remove", "removeprefix", "partition", "split", "find"};
    static constexpr std::array<std::string_view, 4> kPatterns = {"match", "fullmatch", "search",
                                                                  "findall"};
    const std::string_view name = source_.text(opener - 1);
    if (IsOneOf(name, kPatterns)) {
      return IsArgv(TokenRange{opener, source_.Closer(opener)});
    }
    return IsOneOf(name, kMethods) && IsArgv(LeftSide(opener - 1));
  }

  // `case "--local_rank":` below `match <word of argv>:`.
  bool IsMatchedCase(std::size_t at) const {
    std::size_t start = at;
    while (start > 0 && at - start < kWindow &&
           source_.tokens()[start - 1].kind != PythonTokenKind::kNewline) {
      --start;
    }
    return matches_argv_ && source_.text(start) == "case";
  }

  const PythonSource& source_;
  const LocalRankFound& found_;
  std::set<std::string_view> names_;  // Hold argv, a part of it, or one of its words.
  bool matches_argv_ = false;
};

}  // namespace

void FindArgvLooks(const PythonSource& source, const LocalRankFound& found) {
  ArgvRules(source, found).Run();
}

}  // namespace ddprun
