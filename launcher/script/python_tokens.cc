#include "launcher/script/python_tokens.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace ddprun {
namespace {

constexpr std::size_t kNone = std::string_view::npos;
constexpr std::size_t kMaxFormatNesting = 64;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// Bytes of other alphabets count as letters: which of them Python allows does not matter here.
bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

bool IsNameChar(char c) {
  return IsNameStart(c) || IsDigit(c);
}

bool IsNewline(char c) {
  return c == '\n' || c == '\r';
}

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\f' || c == '\v';
}

bool IsQuote(char c) {
  return c == '"' || c == '\'';
}

// How a string literal starts.
struct Opening {
  char quote = '"';
  bool triple = false;
  bool raw = false;
  bool formatted = false;
  bool bytes = false;

  std::size_t quotes() const { return triple ? 3 : 1; }
};

struct Prefix {
  bool raw = false;
  bool formatted = false;
  bool bytes = false;
};

// The string prefixes: r, u, b, f, t and the pairs of r with b, f or t, in any case and order.
std::optional<Prefix> ParsePrefix(std::string_view name) {
  if (name.size() > 2) {
    return std::nullopt;
  }
  std::string letters;
  for (const char c : name) {
    letters += static_cast<char>(c | 0x20);
  }
  std::sort(letters.begin(), letters.end());
  static constexpr std::array<std::string_view, 9> kPrefixes = {"",  "r",  "u",  "b", "f",
                                                                "t", "br", "fr", "rt"};
  if (std::find(kPrefixes.begin(), kPrefixes.end(), letters) == kPrefixes.end()) {
    return std::nullopt;
  }
  const auto has = [&](char c) { return letters.find(c) != std::string::npos; };
  return Prefix{has('r'), has('f') || has('t'), has('b')};
}

Opening MakeOpening(std::string_view source, std::size_t quote_at, const Prefix& prefix) {
  const char quote = source[quote_at];
  const bool triple = source.substr(quote_at, 3) == std::string(3, quote);
  return Opening{quote, triple, prefix.raw, prefix.formatted, prefix.bytes};
}

bool ClosesAt(std::string_view source, std::size_t at, const Opening& opening) {
  return source[at] == opening.quote &&
         (!opening.triple || source.substr(at, 3) == std::string(3, opening.quote));
}

// Past a backslash and what it escapes; a CR LF pair is one character.
std::size_t PastEscape(std::string_view source, std::size_t at) {
  const std::size_t width = source.substr(at + 1, 2) == "\r\n" ? 3 : 2;
  return std::min(source.size(), at + width);
}

// Past the closing quotes, without looking at replacement fields.
std::size_t EndOfPlainString(std::string_view source, std::size_t at, const Opening& opening) {
  while (at < source.size()) {
    if (source[at] == '\\') {
      at = PastEscape(source, at);
    } else if (ClosesAt(source, at, opening)) {
      return at + opening.quotes();
    } else if (IsNewline(source[at]) && !opening.triple) {
      return at;
    } else {
      ++at;
    }
  }
  return source.size();
}

// Finds the end of an f-string, whose fields may hold strings with the same quotes. The stack holds
// the open texts and fields, innermost last.
class FormattedStringReader {
 public:
  explicit FormattedStringReader(std::string_view source) : source_(source) {}

  // `at` is behind the opening quotes. kNone when the text cannot be one.
  std::size_t End(std::size_t at, const Opening& opening) {
    at_ = at;
    stack_.assign(1, Frame{opening, false, false, 0});
    while (!stack_.empty()) {
      if (at_ >= source_.size() || stack_.size() > kMaxFormatNesting || !Step()) {
        return kNone;
      }
    }
    return at_;
  }

 private:
  struct Frame {
    Opening opening;     // Of the text, or of the text around the field.
    bool field = false;  // Between braces.
    bool spec = false;   // Field: behind its colon, where text is literal again.
    int depth = 0;       // Field: open brackets of its expression.
  };

  bool Step() {
    const Frame& top = stack_.back();
    return !top.field ? StepText() : top.spec ? StepSpec() : StepExpression();
  }

  bool StepText() {
    const Opening opening = stack_.back().opening;
    const char c = source_[at_];
    if (c == '\\') {
      StepEscape(opening);
    } else if (ClosesAt(source_, at_, opening)) {
      at_ += opening.quotes();
      stack_.pop_back();
    } else if (IsNewline(c) && !opening.triple) {
      return false;
    } else if (opening.formatted && c == '{' && source_.substr(at_, 2) != "{{") {
      ++at_;
      stack_.push_back(Frame{opening, true, false, 0});
    } else {
      at_ += opening.formatted && source_.substr(at_, 2) == "{{" ? 2U : 1U;
    }
    return true;
  }

  // A brace is a field even behind a backslash, except in \N{NAME}.
  void StepEscape(const Opening& opening) {
    const std::string_view rest = source_.substr(at_, 3);
    if (opening.formatted && !opening.raw && rest == "\\N{") {
      at_ += 3;
    } else if (opening.formatted && rest.size() > 1 && rest[1] == '{') {
      ++at_;
    } else {
      at_ = PastEscape(source_, at_);
    }
  }

  bool StepSpec() {
    const Frame top = stack_.back();
    const char c = source_[at_];
    if (ClosesAt(source_, at_, top.opening) || (IsNewline(c) && !top.opening.triple)) {
      return false;
    }
    ++at_;
    if (c == '}') {
      stack_.pop_back();
    } else if (c == '{') {
      stack_.push_back(Frame{top.opening, true, false, 0});
    }
    return true;
  }

  bool StepExpression() {
    Frame& top = stack_.back();
    const char c = source_[at_];
    if (IsNameStart(c) || IsQuote(c)) {
      StepWord();
      return true;
    }
    if (c == '#') {
      at_ = std::min(source_.find_first_of("\r\n", at_), source_.size());
      return true;
    }
    ++at_;
    if (c == '(' || c == '[' || c == '{') {
      ++top.depth;
    } else if (c == '}' && top.depth == 0) {
      stack_.pop_back();
    } else if (c == ')' || c == ']' || c == '}') {
      top.depth = std::max(0, top.depth - 1);
    } else if (c == ':' && top.depth == 0) {
      top.spec = true;
    }
    return true;
  }

  // A name, or a nested string with its prefix.
  void StepWord() {
    const std::size_t start = at_;
    while (at_ < source_.size() && IsNameChar(source_[at_])) {
      ++at_;
    }
    if (at_ >= source_.size() || !IsQuote(source_[at_])) {
      return;
    }
    const std::optional<Prefix> prefix = ParsePrefix(source_.substr(start, at_ - start));
    const Opening opening = MakeOpening(source_, at_, prefix.value_or(Prefix{}));
    at_ += opening.quotes();
    stack_.push_back(Frame{opening, false, false, 0});
  }

  std::string_view source_;
  std::size_t at_ = 0;
  std::vector<Frame> stack_;
};

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
      StepString(at_, Prefix{});
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
      if (const auto prefix = ParsePrefix(source_.substr(start, at_ - start))) {
        StepString(start, *prefix);
        return;
      }
    }
    Push(PythonTokenKind::kName, start, at_);
  }

  // at_ is at the quote.
  void StepString(std::size_t start, const Prefix& prefix) {
    const Opening opening = MakeOpening(source_, at_, prefix);
    const std::size_t body = at_ + opening.quotes();
    std::size_t end = kNone;
    if (opening.formatted && !plain_fields_) {
      end = FormattedStringReader(source_).End(body, opening);
      // After a failure the simple rule holds for the rest of the file: reading stays linear.
      plain_fields_ = end == kNone;
    }
    if (end == kNone) {
      end = EndOfPlainString(source_, body, opening);
    }
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

int HexDigit(char c) {
  if (IsDigit(c)) {
    return c - '0';
  }
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

void AppendUtf8(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | (code >> 6));
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | ((code >> 18) & 0x07));
    byte(0x80 | ((code >> 12) & 0x3F));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

struct NumericEscape {
  std::uint32_t code = 0;
  std::size_t digits = 0;
};

NumericEscape ReadDigits(std::string_view text, std::size_t most, int base) {
  NumericEscape escape;
  while (escape.digits < std::min(most, text.size())) {
    const int digit = HexDigit(text[escape.digits]);
    if (digit < 0 || digit >= base) {
      break;
    }
    escape.code =
        escape.code * static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(digit);
    ++escape.digits;
  }
  return escape;
}

// Appends what the escape at body[at] (the backslash) means; the index behind it.
std::size_t AppendEscape(std::string_view body, std::size_t at, std::string& out) {
  if (at + 1 >= body.size()) {
    out += '\\';
    return at + 1;
  }
  const char c = body[at + 1];
  if (IsNewline(c)) {
    return PastEscape(body, at);
  }
  static constexpr std::string_view kNames = "abfnrtv\\'\"";
  static constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"";
  if (const std::size_t found = kNames.find(c); found != kNone) {
    out += kValues[found];
    return at + 2;
  }
  const bool octal = c >= '0' && c <= '7';
  const std::size_t width = octal ? 3 : c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  const std::size_t digits_at = octal ? at + 1 : at + 2;
  const NumericEscape escape =
      ReadDigits(body.substr(std::min(digits_at, body.size())), width, octal ? 8 : 16);
  if (escape.digits == 0 || (!octal && escape.digits != width)) {
    out += '\\';
    return at + 1;
  }
  AppendUtf8(out, escape.code);
  return digits_at + escape.digits;
}

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

PythonString DecodePythonString(std::string_view literal) {
  const std::size_t quote_at = literal.find_first_of("\"'");
  if (quote_at == kNone) {
    return {};
  }
  const Prefix prefix = ParsePrefix(literal.substr(0, quote_at)).value_or(Prefix{});
  const Opening opening = MakeOpening(literal, quote_at, prefix);
  std::string_view body = literal.substr(std::min(literal.size(), quote_at + opening.quotes()));
  if (body.size() >= opening.quotes() && ClosesAt(body, body.size() - opening.quotes(), opening)) {
    body.remove_suffix(opening.quotes());
  }
  PythonString result{{}, opening.bytes, false};
  for (std::size_t at = 0; at < body.size();) {
    if (body[at] == '\\' && !opening.raw) {
      at = AppendEscape(body, at, result.value);
      continue;
    }
    const bool brace = opening.formatted && (body[at] == '{' || body[at] == '}');
    const bool doubled = brace && at + 1 < body.size() && body[at + 1] == body[at];
    result.has_fields = result.has_fields || (brace && !doubled);
    result.value += body[at];
    at += doubled ? 2U : 1U;
  }
  return result;
}

}  // namespace ddprun
