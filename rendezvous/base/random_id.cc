#include "rendezvous/base/random_id.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cstdint>
#include <vector>

#include "rendezvous/base/check.h"

namespace ddprun {
namespace {

void FillRandom(unsigned char* bytes, std::size_t size) {
  // Up to 256 bytes are never cut short nor interrupted once the pool is ready (random(7)).
  DDP_CHECK(size <= 256);
  DDP_CHECK(::getrandom(bytes, size, 0) == static_cast<ssize_t>(size));
}

}  // namespace

std::string RandomSuffix(std::size_t length) {
  static constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789_";
  std::vector<unsigned char> bytes(length);
  FillRandom(bytes.data(), bytes.size());
  std::string suffix;
  for (const unsigned char byte : bytes) {
    suffix.push_back(kAlphabet[byte % kAlphabet.size()]);
  }
  return suffix;
}

std::string RandomUuid4() {
  std::array<unsigned char, 16> bytes{};
  FillRandom(bytes.data(), bytes.size());
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0fU) | 0x40U);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3fU) | 0x80U);
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", dash ? "-" : "", bytes[i]);
  }
  return text;
}

}  // namespace ddprun
