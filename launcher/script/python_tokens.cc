#include "launcher/script/python_tokens.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "launcher/script/python_strings.h"

namespace ddprun {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

// Longest first.
constexpr std::array<std::string_view, 25> kLongOperators = {
    "**=", "//=", "<<=", ">>=", "...", "==", "!=", "<=", ">=", ":=", "->", "**", "//",
    "<<",  ">>",  "+=",  "-=",  "*=",  "/=", "%=", "&=", "|=", "^=", "@=", "<>"};

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view source) : source_(source) {}

  PythonTokens Run() {
    while (at_ < source_.size()) {
      if (result_.tokens.size() >= kMaxPythonTokens) {
        result_.complete = false;
        break;
      }
      Step();
    }
    depth_ = 0;
    EndLogicalLine();
    return std::move(result_);
  }

 private:
  void Step() {
    const char c = source_[at_];
    if (IsNewline(c)) {
      StepNewline();
    } else if (IsBlank(c)) {
      StepBlank(c);
    } else if (c == '#') {
      at_ = std::min(source_.find_first_of("\r\n", at_), source_.size());
    } else if (c == '\\' && at_ + 1 < source_.size() && IsNewline(source_[at_ + 1])) {
      at_ = PastEscape(source_, at_);
      ++line_;
    } else if (IsNameStart(c)) {
      StepName();
    } else if (IsQuote(c)) {
      StepString(at_, StringPrefix{});
    } else if (IsDigit(c) || (c == '.' && at_ + 1 < source_.size() && IsDigit(source_[at_ + 1]))) {
      StepNumber();
    } else {
      StepOperator(c);
    }
  }

  void StepNewline() {
    EndLogicalLine();
    at_ += source_.substr(at_, 2) == "\r\n" ? 2U : 1U;
    ++line_;
    if (depth_ == 0) {
      indent_ = 0;
    }
  }

  void EndLogicalLine() {
    if (depth_ == 0 && !result_.tokens.empty() &&
        result_.tokens.back().kind != PythonTokenKind::kNewline) {
      Push(PythonTokenKind::kNewline, at_, at_);
    }
  }

  // Only the blanks in front of a logical line's first token count.
  void StepBlank(char c) {
    ++at_;
    const bool at_start =
        result_.tokens.empty() || result_.tokens.back().kind == PythonTokenKind::kNewline;
    if (at_start && depth_ == 0) {
      indent_ = c == '\t' ? (indent_ / 8 + 1) * 8 : c == ' ' ? indent_ + 1 : 0;
    }
  }

  void StepName() {
    const std::size_t start = at_;
    while (at_ < source_.size() && IsNameChar(source_[at_])) {
      ++at_;
    }
    if (at_ < source_.size() && IsQuote(source_[at_])) {
      if (const auto prefix = ParseStringPrefix(source_.substr(start, at_ - start))) {
        StepString(start, *prefix);
        return;
      }
    }
    Push(PythonTokenKind::kName, start, at_);
  }

  // at_ is at the quote.
  void StepString(std::size_t start, const StringPrefix& prefix) {
    const StringOpening opening = OpenString(source_, at_, prefix);
    const std::size_t body = at_ + opening.quotes();
    std::optional<std::size_t> closed;
    if (opening.formatted && !plain_fields_) {
      closed = EndOfFormattedString(source_, body, opening);
      // After a failure the simple rule holds for the rest of the file: reading stays linear.
      plain_fields_ = !closed;
    }
    const std::size_t end = closed ? *closed : EndOfPlainString(source_, body, opening);
    Push(PythonTokenKind::kString, start, end);
    CountLines(start, end);
    at_ = end;
  }

  void StepNumber() {
    const std::size_t start = at_;
    while (at_ < source_.size() && (IsNameChar(source_[at_]) || source_[at_] == '.')) {
      const bool exponent = source_[at_] == 'e' || source_[at_] == 'E';
      ++at_;
      if (exponent && at_ < source_.size() && (source_[at_] == '+' || source_[at_] == '-')) {
        ++at_;
      }
    }
    Push(PythonTokenKind::kNumber, start, at_);
  }

  void StepOperator(char c) {
    const std::size_t start = at_;
    const auto found = std::find_if(
        kLongOperators.begin(), kLongOperators.end(),
        [&](std::string_view text) { return source_.substr(start, text.size()) == text; });
    at_ += found == kLongOperators.end() ? 1U : found->size();
    if (c == '(' || c == '[' || c == '{') {
      ++depth_;
    } else if (c == ')' || c == ']' || c == '}') {
      depth_ = std::max(0, depth_ - 1);
    }
    Push(PythonTokenKind::kOperator, start, at_);
  }

  void CountLines(std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      const bool pair = source_[i] == '\r' && i + 1 < source_.size() && source_[i + 1] == '\n';
      line_ += IsNewline(source_[i]) && !pair ? 1U : 0U;
    }
  }

  void Push(PythonTokenKind kind, std::size_t from, std::size_t to) {
    constexpr std::uint32_t kWidest = std::numeric_limits<std::uint16_t>::max();
    result_.tokens.push_back(PythonToken{source_.substr(from, to - from), line_,
                                         static_cast<std::uint16_t>(std::min(indent_, kWidest)),
                                         kind});
  }

  std::string_view source_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  std::uint32_t indent_ = 0;
  int depth_ = 0;
  bool plain_fields_ = false;
  PythonTokens result_;
};
// The name in an encoding declaration on the first two lines, lower case; empty without one.
std::string DeclaredEncoding(std::string_view source) {
  const std::size_t first = source.find('\n');
  const std::size_t second = first == kNone ? kNone : source.find('\n', first + 1);
  const std::string_view head = source.substr(0, std::min<std::size_t>(second, 400));
  const std::size_t coding = head.find("coding");
  if (coding == kNone || head.find('#') > coding) {
    return {};
  }
  std::size_t at = coding + 6;
  if (at >= head.size() || (head[at] != ':' && head[at] != '=')) {
    return {};
  }
  at = head.find_first_not_of(" \t", at + 1);
  std::string name;
  while (at < head.size() && (IsNameChar(head[at]) || head[at] == '-' || head[at] == '.')) {
    name +=
        head[at] == '_' ? '-' : static_cast<char>(IsDigit(head[at]) ? head[at] : head[at] | 0x20);
    ++at;
  }
  return name;
}

bool StartsWithAny(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view start) { return text.substr(0, start.size()) == start; });
}

void HideDoubleBytes(std::string& source, bool shift_jis) {
  for (std::size_t i = 0; i + 1 < source.size(); ++i) {
    const auto c = static_cast<unsigned char>(source[i]);
    const bool lead = shift_jis ? (c >= 0x81 && c <= 0x9F) || c >= 0xE0 : c >= 0x81;
    if (lead && !IsNewline(source[i + 1])) {
      source[i] = source[i + 1] = '\x80';
      ++i;
    }
  }
}

}  // namespace
std::string NormalizePythonSource(std::string_view source) {
  if (source.substr(0, 3) == "\xEF\xBB\xBF") {
    source.remove_prefix(3);
  }
  std::string text(source.substr(0, kMaxPythonSourceBytes));
  const std::string encoding = DeclaredEncoding(text);
  const bool shift_jis = StartsWithAny(encoding, {"shift", "sjis", "s-jis", "cp932", "ms932"});
  if (shift_jis ||
      StartsWithAny(encoding, {"gb", "cp936", "big5", "cp950", "johab", "cp949", "euc"})) {
    HideDoubleBytes(text, shift_jis);
  }
  return text;
}

PythonTokens TokenizePython(std::string_view source) {
  return Tokenizer(source).Run();
}

}  // namespace ddprun
