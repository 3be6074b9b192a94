#pragma once

// The tokens of a Python source, as far as a reader of declarations needs them: names, numbers,
// string literals, operators and the ends of logical lines. Pure; any input is accepted. Rules: the
// Python language reference, "Lexical analysis", up to 3.14 (f-strings nest as in PEP 701,
// t-strings as in PEP 750); what older versions accept reads the same.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

// More of a file than this is not read: no training script is near it, and it bounds the memory.
inline constexpr std::size_t kMaxPythonSourceBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMaxPythonTokens = 500'000;

enum class PythonTokenKind : std::uint8_t { kName, kNumber, kString, kOperator, kNewline };

struct PythonToken {
  std::string_view text;   // In the source; of a string literal with its prefix and quotes.
  std::uint32_t line = 0;  // From 1, where it starts.
  std::uint16_t indent =
      0;  // Of its logical line, in columns; a tab goes to the next multiple of 8.
  PythonTokenKind kind = PythonTokenKind::kOperator;
};

struct PythonTokens {
  std::vector<PythonToken> tokens;  // A non-empty list ends with a kNewline.
  bool complete = true;             // False: a limit was reached, the rest is missing.
};

struct PythonString {
  std::string value;        // Escapes are resolved; \N{...} stays as written.
  bool bytes = false;       // b"...".
  bool has_fields = false;  // An f-string with replacement fields: its value is not known.
};

// What the tokenizer reads: at most kMaxPythonSourceBytes, no byte order mark; where an encoding
// declaration (PEP 263) names a double-byte character set, its characters are made opaque, because
// their second byte may look like a quote's escape.
std::string NormalizePythonSource(std::string_view source);

// `source` must outlive the tokens. Unterminated strings end at the line (a triple-quoted one at
// the file), unmatched brackets are kept as they are. Linear in the input.
PythonTokens TokenizePython(std::string_view source);

// The value of one kString token.
PythonString DecodePythonString(std::string_view literal);

}  // namespace ddprun
