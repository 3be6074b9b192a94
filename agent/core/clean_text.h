#pragma once

// Text that came from a worker, made fit for a report: valid UTF-8, no bytes that steer a terminal,
// bounded in length. Pure; works on bytes and depends on no locale.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

// Every byte that is not part of a well-formed UTF-8 sequence (RFC 3629) becomes U+FFFD.
std::string ReplaceInvalidUtf8(std::string_view text);

// Code points of valid UTF-8: what Python's len() counts, and so what torch measures widths in.
std::size_t CountCodePoints(std::string_view text);

// At most `max_code_points`; a longer text ends with "...". The input must be valid UTF-8.
std::string Shorten(std::string_view text, std::size_t max_code_points);

// One line as a terminal would have shown it at the end: what follows the last carriage return,
// without escape sequences, other control characters as '?', invalid bytes as U+FFFD, shortened.
std::string ScreenLine(std::string_view line, std::size_t max_code_points);

// The last `max_lines` lines as ScreenLine gives them. Empty lines at the very end do not count.
std::vector<std::string> LastScreenLines(std::string_view text, std::size_t max_lines,
                                         std::size_t max_code_points);

// `text` in lower case (ASCII only), for searching.
std::string LowerCase(std::string_view text);

}  // namespace ddprun
