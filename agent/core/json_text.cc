#include "agent/core/json_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

namespace ddprun {
namespace {

constexpr std::size_t kUnicodeEscape = 6;  // Characters of \uXXXX.

// The value of the \uXXXX at the start of `text`.
std::optional<unsigned> UnicodeEscape(std::string_view text) {
  if (text.size() < kUnicodeEscape || text[0] != '\\' || text[1] != 'u') {
    return std::nullopt;
  }
  unsigned value = 0;
  const char* end = text.data() + kUnicodeEscape;
  const auto result = std::from_chars(text.data() + 2, end, value, 16);
  return result.ec == std::errc() && result.ptr == end ? std::optional(value) : std::nullopt;
}

bool IsHighSurrogate(unsigned value) {
  return value >= 0xd800 && value < 0xdc00;
}

bool IsLowSurrogate(unsigned value) {
  return value >= 0xdc00 && value < 0xe000;
}

// Walks the text once, copying it with the replacements. `rest_` always begins at the next byte.
class StrictWriter {
 public:
  explicit StrictWriter(std::string_view text) : rest_(text) { out_.reserve(text.size()); }

  Expected<std::string> Run() {
    while (!rest_.empty()) {
      if (in_string_) {
        StepInString();
      } else {
        StepOutside();
      }
      if (depth_ > kMaxJsonDepth) {
        return Fail(ErrorCode::kOutOfRange, fmt::format("nested deeper than {}", kMaxJsonDepth));
      }
      if (members_ > kMaxJsonMembers) {
        return Fail(ErrorCode::kOutOfRange, fmt::format("more than {} members", kMaxJsonMembers));
      }
    }
    return std::move(out_);
  }

 private:
  void Copy(std::size_t count) {
    out_.append(rest_.substr(0, count));
    rest_.remove_prefix(std::min(count, rest_.size()));
  }

  void StepInString() {
    if (rest_[0] == '\\') {
      CopyEscape();
      return;
    }
    in_string_ = rest_[0] != '"';
    Copy(1);
  }

  void CopyEscape() {
    const std::optional<unsigned> first = UnicodeEscape(rest_);
    if (!first || (!IsHighSurrogate(*first) && !IsLowSurrogate(*first))) {
      Copy(first ? kUnicodeEscape : 2);
      return;
    }
    const std::optional<unsigned> second = UnicodeEscape(rest_.substr(kUnicodeEscape));
    if (IsHighSurrogate(*first) && second && IsLowSurrogate(*second)) {
      Copy(2 * kUnicodeEscape);
      return;
    }
    out_.push_back('\\');  // Escapes the backslash itself, so the escape stays visible as text.
    Copy(kUnicodeEscape);
  }

  void StepOutside() {
    constexpr std::array<std::string_view, 3> kNotJson{"-Infinity", "Infinity", "NaN"};
    for (std::string_view word : kNotJson) {
      if (rest_.substr(0, word.size()) == word) {
        out_.append("null");
        rest_.remove_prefix(word.size());
        return;
      }
    }
    Count(rest_[0]);
    Copy(1);
  }

  void Count(char c) {
    switch (c) {
      case '"':
        in_string_ = true;
        break;
      case '{':
      case '[':
        ++depth_;
        break;
      case '}':
      case ']':
        depth_ -= depth_ > 0 ? 1 : 0;
        break;
      case ':':
        ++members_;
        break;
      default:
        break;
    }
  }

  std::string_view rest_;
  std::string out_;
  bool in_string_ = false;
  std::size_t depth_ = 0;
  std::size_t members_ = 0;
};

}  // namespace

Expected<std::string> StrictJson(std::string_view python_json) {
  return StrictWriter(python_json).Run();
}

std::string WithPythonSpacing(std::string_view compact_json) {
  std::string spaced;
  spaced.reserve(compact_json.size() + compact_json.size() / 8);
  bool in_string = false;
  bool escaped = false;
  for (char c : compact_json) {
    spaced.push_back(c);
    if (in_string) {
      in_string = escaped || c != '"';
      escaped = !escaped && c == '\\';
    } else if (c == '"') {
      in_string = true;
    } else if (c == ',' || c == ':') {
      spaced.push_back(' ');
    }
  }
  return spaced;
}

}  // namespace ddprun
