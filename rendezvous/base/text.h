#pragma once

// Small pieces of text handling that several parts need. All of it works on bytes; nothing depends
// on a locale.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

// Without the white space (blank, \t \n \r \v \f) at both ends.
std::string_view Trim(std::string_view text);

// The pieces between separators; an empty text gives one empty piece.
std::vector<std::string> Split(std::string_view text, char separator);

std::string Join(const std::vector<std::string>& pieces, std::string_view separator);

// As Python's int(text): optional sign, blanks around, single `_` between digits, decimal only.
// nullopt for anything else, and for what does not fit in 64 bits.
std::optional<long long> ParsePythonInt(std::string_view text);

// As Python's float(text): also inf, nan and exponents; `_` between digits.
std::optional<double> ParsePythonFloat(std::string_view text);

// The candidate with the smallest edit distance to `word`, if it is near enough to be a likely
// typing error.
std::optional<std::string> NearestWord(std::string_view word,
                                       const std::vector<std::string>& candidates);

}  // namespace ddprun
