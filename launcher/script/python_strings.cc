#include "launcher/script/python_strings.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "launcher/script/python_tokens.h"

namespace ddprun {
namespace {

constexpr std::size_t kNone = std::string_view::npos;
constexpr std::size_t kMaxFormatNesting = 64;

bool ClosesAt(std::string_view source, std::size_t at, const StringOpening& opening) {
  return source[at] == opening.quote &&
         (!opening.triple || source.substr(at, 3) == std::string(3, opening.quote));
}

// Finds the end of an f-string, whose fields may hold strings with the same quotes. The stack holds
// the open texts and fields, innermost last.
class FormattedStringReader {
 public:
  explicit FormattedStringReader(std::string_view source) : source_(source) {}

  // `at` is behind the opening quotes. nullopt when the text cannot be one.
  std::optional<std::size_t> End(std::size_t at, const StringOpening& opening) {
    at_ = at;
    stack_.assign(1, Frame{opening, false, false, 0});
    while (!stack_.empty()) {
      if (at_ >= source_.size() || stack_.size() > kMaxFormatNesting || !Step()) {
        return std::nullopt;
      }
    }
    return at_;
  }

 private:
  struct Frame {
    StringOpening opening;  // Of the text, or of the text around the field.
    bool field = false;     // Between braces.
    bool spec = false;      // Field: behind its colon, where text is literal again.
    int depth = 0;          // Field: open brackets of its expression.
  };

  bool Step() {
    const Frame& top = stack_.back();
    return !top.field ? StepText() : top.spec ? StepSpec() : StepExpression();
  }

  bool StepText() {
    const StringOpening opening = stack_.back().opening;
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
  void StepEscape(const StringOpening& opening) {
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
    const std::optional<StringPrefix> prefix =
        ParseStringPrefix(source_.substr(start, at_ - start));
    const StringOpening opening = OpenString(source_, at_, prefix.value_or(StringPrefix{}));
    at_ += opening.quotes();
    stack_.push_back(Frame{opening, false, false, 0});
  }

  std::string_view source_;
  std::size_t at_ = 0;
  std::vector<Frame> stack_;
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
}  // namespace

// The string prefixes: r, u, b, f, t and the pairs of r with b, f or t, in any case and order.
std::optional<StringPrefix> ParseStringPrefix(std::string_view name) {
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
  return StringPrefix{has('r'), has('f') || has('t'), has('b')};
}

StringOpening OpenString(std::string_view source, std::size_t quote_at,
                         const StringPrefix& prefix) {
  const char quote = source[quote_at];
  const bool triple = source.substr(quote_at, 3) == std::string(3, quote);
  return StringOpening{quote, triple, prefix.raw, prefix.formatted, prefix.bytes};
}

// Past a backslash and what it escapes; a CR LF pair is one character.
std::size_t PastEscape(std::string_view source, std::size_t at) {
  const std::size_t width = source.substr(at + 1, 2) == "\r\n" ? 3 : 2;
  return std::min(source.size(), at + width);
}

// Past the closing quotes, without looking at replacement fields.
std::size_t EndOfPlainString(std::string_view source, std::size_t at,
                             const StringOpening& opening) {
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

std::optional<std::size_t> EndOfFormattedString(std::string_view source, std::size_t at,
                                                const StringOpening& opening) {
  return FormattedStringReader(source).End(at, opening);
}

PythonString DecodePythonString(std::string_view literal) {
  const std::size_t quote_at = literal.find_first_of("\"'");
  if (quote_at == kNone) {
    return {};
  }
  const StringPrefix prefix =
      ParseStringPrefix(literal.substr(0, quote_at)).value_or(StringPrefix{});
  const StringOpening opening = OpenString(literal, quote_at, prefix);
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
