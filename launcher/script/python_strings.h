#pragma once

// How Python's string literals begin and end. Internal to the tokenizer; pure.

#include <cstddef>
#include <optional>
#include <string_view>

namespace ddprun {

inline bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// Bytes of other alphabets count as letters: which of them Python allows does not matter here.
inline bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

inline bool IsNameChar(char c) {
  return IsNameStart(c) || IsDigit(c);
}

inline bool IsNewline(char c) {
  return c == '\n' || c == '\r';
}

inline bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\f' || c == '\v';
}

inline bool IsQuote(char c) {
  return c == '"' || c == '\'';
}

// How a string literal starts.
struct StringOpening {
  char quote = '"';
  bool triple = false;
  bool raw = false;
  bool formatted = false;
  bool bytes = false;

  std::size_t quotes() const { return triple ? 3 : 1; }
};

struct StringPrefix {
  bool raw = false;
  bool formatted = false;
  bool bytes = false;
};

// The string prefixes: r, u, b, f, t and the pairs of r with b, f or t, in any case and order.
std::optional<StringPrefix> ParseStringPrefix(std::string_view name);

StringOpening OpenString(std::string_view source, std::size_t quote_at, const StringPrefix& prefix);

// Past a backslash and what it escapes; a CR LF pair is one character.
std::size_t PastEscape(std::string_view source, std::size_t at);

// Past the closing quotes, without looking at replacement fields. An unterminated text ends at its
// line, a triple-quoted one at the file.
std::size_t EndOfPlainString(std::string_view source, std::size_t at, const StringOpening& opening);

// The same for an f-string or t-string, whose fields may hold strings with the same quotes; nullopt
// when the text cannot be one.
std::optional<std::size_t> EndOfFormattedString(std::string_view source, std::size_t at,
                                                const StringOpening& opening);

}  // namespace ddprun
