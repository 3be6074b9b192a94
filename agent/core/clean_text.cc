#include "agent/core/clean_text.h"

#include <algorithm>

namespace ddprun {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr char kEscape = '\x1b';

unsigned char ByteAt(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

bool IsContinuation(unsigned char byte) {
  return (byte & 0xc0U) == 0x80U;
}

std::size_t LengthFromLead(unsigned char lead) {
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xc2 && lead < 0xe0) {
    return 2;
  }
  if (lead >= 0xe0 && lead < 0xf0) {
    return 3;
  }
  return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

// Refuses overlong forms, surrogates and what lies above U+10FFFF; they show in the second byte.
bool SecondByteFits(unsigned char lead, unsigned char second) {
  switch (lead) {
    case 0xe0:
      return second >= 0xa0;
    case 0xed:
      return second < 0xa0;
    case 0xf0:
      return second >= 0x90;
    case 0xf4:
      return second < 0x90;
    default:
      return true;
  }
}

// Bytes of the well-formed sequence at `index`, 0 when there is none.
std::size_t SequenceLength(std::string_view text, std::size_t index) {
  const unsigned char lead = ByteAt(text, index);
  const std::size_t length = LengthFromLead(lead);
  if (length == 0 || length > text.size() - index) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (!IsContinuation(ByteAt(text, index + i))) {
      return 0;
    }
  }
  return length == 1 || SecondByteFits(lead, ByteAt(text, index + 1)) ? length : 0;
}

// The index after an escape sequence that begins at `index` (ECMA-48: CSI up to its final byte, OSC
// up to BEL or ST, everything else two bytes).
std::size_t SkipEscape(std::string_view text, std::size_t index) {
  const std::size_t kind = index + 1;
  if (kind >= text.size()) {
    return text.size();
  }
  std::size_t i = kind + 1;
  if (text[kind] == '[') {
    while (i < text.size() && (text[i] < '@' || text[i] > '~')) {
      ++i;
    }
    return std::min(i + 1, text.size());
  }
  if (text[kind] == ']') {
    while (i < text.size() && text[i] != '\a' && text[i] != kEscape) {
      ++i;
    }
    return i < text.size() && text[i] == kEscape ? std::min(i + 2, text.size())
                                                 : std::min(i + 1, text.size());
  }
  return i;
}

// C0 without the tab, DEL, and C1 (U+0080 to U+009F), some of which terminals obey.
bool IsControl(std::string_view sequence) {
  const unsigned char first = ByteAt(sequence, 0);
  if (sequence.size() == 1) {
    return (first < 0x20 && first != '\t') || first == 0x7f;
  }
  return first == 0xc2 && ByteAt(sequence, 1) < 0xa0;
}

std::string_view AfterLastReturn(std::string_view line) {
  while (!line.empty() && line.back() == '\r') {
    line.remove_suffix(1);
  }
  const std::size_t last = line.rfind('\r');
  return last == std::string_view::npos ? line : line.substr(last + 1);
}

}  // namespace

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = SequenceLength(text, i);
    valid.append(length == 0 ? kReplacement : text.substr(i, length));
    i += std::max<std::size_t>(length, 1);
  }
  return valid;
}

std::size_t CountCodePoints(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return !IsContinuation(static_cast<unsigned char>(c));
  }));
}

std::string Shorten(std::string_view text, std::size_t max_code_points) {
  constexpr std::string_view kDots = "...";
  if (CountCodePoints(text) <= max_code_points) {
    return std::string(text);
  }
  const std::size_t keep = max_code_points - std::min(max_code_points, kDots.size());
  std::size_t seen = 0;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    if (!IsContinuation(ByteAt(text, end)) && ++seen > keep) {
      break;
    }
  }
  return std::string(text.substr(0, end)).append(kDots);
}

std::string ScreenLine(std::string_view line, std::size_t max_code_points) {
  const std::string_view visible = AfterLastReturn(line);
  std::string screen;
  for (std::size_t i = 0; i < visible.size();) {
    if (visible[i] == kEscape) {
      i = SkipEscape(visible, i);
      continue;
    }
    const std::size_t length = SequenceLength(visible, i);
    if (length == 0) {
      screen.append(kReplacement);
    } else {
      const std::string_view sequence = visible.substr(i, length);
      screen.append(IsControl(sequence) ? std::string_view("?") : sequence);
    }
    i += std::max<std::size_t>(length, 1);
  }
  return Shorten(screen, max_code_points);
}

std::vector<std::string> LastScreenLines(std::string_view text, std::size_t max_lines,
                                         std::size_t max_code_points) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  std::vector<std::string> lines;
  bool more = !text.empty();
  while (more && lines.size() < max_lines) {
    const std::size_t newline = text.rfind('\n');
    more = newline != std::string_view::npos;
    lines.push_back(ScreenLine(text.substr(more ? newline + 1 : 0), max_code_points));
    text = text.substr(0, more ? newline : 0);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

}  // namespace ddprun
