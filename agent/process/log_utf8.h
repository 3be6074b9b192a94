#pragma once

// UTF-8 as a console wants it. The definition of "well-formed" is Unicode's table 3-7; invalid
// parts are replaced one U+FFFD for each maximal subpart, as Python's errors="replace" does.

#include <cstddef>
#include <string>
#include <string_view>

namespace ddprun {

bool IsAscii(std::string_view bytes);

// Appends `bytes`, with what is not UTF-8 replaced.
void AppendAsUtf8(std::string& text, std::string_view bytes);

// The bytes of a character at the end of `bytes` that has begun well and is not complete yet: 0
// to 3.
std::size_t UnfinishedUtf8(std::string_view bytes);

}  // namespace ddprun
