#pragma once

// The two ways in which JSON written by Python's json module differs from what a strict parser
// takes and a compact writer gives. Pure text; the parsing itself is nlohmann-json's, in the
// folders above.

#include <cstddef>
#include <string>
#include <string_view>

#include "rendezvous/base/error.h"

namespace ddprun {

// Beyond these a file is no error record any more. The limits also keep a parser's memory and time
// small: members of an object are looked up one after the other where their order is kept.
inline constexpr std::size_t kMaxJsonDepth = 100;
inline constexpr std::size_t kMaxJsonMembers = 4096;

// Strict JSON (RFC 8259) for text that Python's json.load accepts: NaN, Infinity and -Infinity
// become null, and the escape of a lone surrogate (a file name that is not UTF-8, in an exception's
// text) becomes the six characters that Python prints for it. Fails beyond the limits; anything
// else that is wrong is left for the parser to refuse.
Expected<std::string> StrictJson(std::string_view python_json);

// Compact JSON with a blank after each ',' and ':' outside of strings, as json.dumps writes it.
std::string WithPythonSpacing(std::string_view compact_json);

}  // namespace ddprun
