#include "rendezvous/base/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <numeric>

namespace ddprun {
namespace {

constexpr std::string_view kSpace = " \t\n\r\v\f";

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// Python allows one underscore between two digits and nowhere else.
std::optional<std::string> WithoutUnderscores(std::string_view text) {
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits.push_back(text[i]);
      continue;
    }
    if (i == 0 || i + 1 == text.size() || !IsDigit(text[i - 1]) || !IsDigit(text[i + 1])) {
      return std::nullopt;
    }
  }
  return digits;
}

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0U);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || text[i] == separator) {
      pieces.emplace_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  return pieces;
}

std::string Join(const std::vector<std::string>& pieces, std::string_view separator) {
  std::string joined;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    joined += i == 0 ? "" : separator;
    joined += pieces[i];
  }
  return joined;
}

std::optional<long long> ParsePythonInt(std::string_view text) {
  const std::optional<std::string> plain = WithoutUnderscores(Trim(text));
  if (!plain || plain->empty()) {
    return std::nullopt;
  }
  std::string_view digits = *plain;
  if (digits[0] == '+') {
    digits.remove_prefix(1);
    if (digits.empty() || !IsDigit(digits[0])) {
      return std::nullopt;
    }
  }
  long long value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> ParsePythonFloat(std::string_view text) {
  const std::optional<std::string> plain = WithoutUnderscores(Trim(text));
  if (!plain || plain->empty()) {
    return std::nullopt;
  }
  std::string_view digits = *plain;
  const bool negative = digits[0] == '-';
  if (negative || digits[0] == '+') {
    digits.remove_prefix(1);
  }
  // from_chars takes neither hexadecimal nor a second sign in this format.
  double value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value,
                                             std::chars_format::general);
  if (digits.empty() || digits[0] == '-' || end != digits.data() + digits.size() ||
      status == std::errc::invalid_argument) {
    return std::nullopt;
  }
  if (status == std::errc::result_out_of_range) {
    value = std::numeric_limits<double>::infinity();
  }
  return negative ? -value : value;
}

std::optional<std::string> NearestWord(std::string_view word,
                                       const std::vector<std::string>& candidates) {
  std::optional<std::string> nearest;
  std::size_t best = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = EditDistance(word, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace ddprun
