#include "agent/process/log_utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace ddprun {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// What may follow a lead byte: Unicode table 3-7.
struct Sequence {
  std::size_t length = 0;  // 0: no character begins with this byte.
  unsigned char second_low = 0x80;
  unsigned char second_high = 0xBF;
};

Sequence SequenceOf(unsigned char lead) {
  if (lead < 0x80) {
    return {1};
  }
  if (lead < 0xC2 || lead > 0xF4) {
    return {0};
  }
  if (lead < 0xE0) {
    return {2};
  }
  if (lead < 0xF0) {
    const unsigned char low = lead == 0xE0 ? 0xA0 : 0x80;
    const unsigned char high = lead == 0xED ? 0x9F : 0xBF;
    return {3, low, high};
  }
  const unsigned char low = lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xF4 ? 0x8F : 0xBF;
  return {4, low, high};
}

struct Scan {
  std::size_t length = 1;  // Of the character, or of the maximal invalid subpart.
  bool complete = false;
  bool cut_off = false;  // Well begun, but the bytes end here.
};

Scan ScanCharacter(std::string_view bytes) {
  const Sequence sequence = SequenceOf(static_cast<unsigned char>(bytes[0]));
  if (sequence.length <= 1) {
    return {1, sequence.length == 1, false};
  }
  std::size_t at = 1;
  while (at < sequence.length && at < bytes.size()) {
    const auto byte = static_cast<unsigned char>(bytes[at]);
    const unsigned char low = at == 1 ? sequence.second_low : 0x80;
    const unsigned char high = at == 1 ? sequence.second_high : 0xBF;
    if (byte < low || byte > high) {
      return {at, false, false};
    }
    ++at;
  }
  return {at, at == sequence.length, at < sequence.length};
}

// How many bytes at the start are ASCII, eight at a time.
std::size_t AsciiLength(std::string_view bytes) {
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    if ((word & 0x8080808080808080U) != 0) {
      break;
    }
  }
  while (at < bytes.size() && static_cast<unsigned char>(bytes[at]) < 0x80) {
    ++at;
  }
  return at;
}

}  // namespace

bool IsAscii(std::string_view bytes) {
  return AsciiLength(bytes) == bytes.size();
}

void AppendAsUtf8(std::string& text, std::string_view bytes) {
  std::size_t copied = 0;  // Everything before is in `text`.
  std::size_t at = 0;
  while (at < bytes.size()) {
    at += AsciiLength(bytes.substr(at));
    if (at == bytes.size()) {
      break;
    }
    const Scan scan = ScanCharacter(bytes.substr(at));
    if (!scan.complete) {
      text.append(bytes, copied, at - copied).append(kReplacement);
      copied = at + scan.length;
    }
    at += scan.length;
  }
  text.append(bytes, copied, bytes.size() - copied);
}

std::size_t UnfinishedUtf8(std::string_view bytes) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, bytes.size()); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if (byte >= 0xC0) {
      return ScanCharacter(bytes.substr(bytes.size() - back)).cut_off ? back : 0;
    }
    if (byte < 0x80) {
      return 0;
    }
  }
  return 0;
}

}  // namespace ddprun
