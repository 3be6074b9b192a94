#pragma once

// Raw TCPStore messages for tests, put together byte by byte from the protocol's description and
// not with the code under test.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace ddprun::wire {

inline std::string U64(std::uint64_t number) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(number >> (8 * i))));
  }
  return bytes;
}

inline std::string I64(std::int64_t number) {
  return U64(static_cast<std::uint64_t>(number));
}

inline std::string Str(std::string_view text) {
  return U64(text.size()) + std::string(text);
}

inline std::string List(std::initializer_list<std::string_view> keys) {
  std::string bytes = U64(keys.size());
  for (const std::string_view key : keys) {
    bytes += Str(key);
  }
  return bytes;
}

inline const std::string kHelloC("\x00\xce\xf7\x85\x3c", 5);
inline const std::string kPing("\x0d\x01\x00\x00\x00", 5);
inline const std::string kPong("\x01\x00\x00\x00", 4);

// The opcodes of one dialect; -1 where it has no such operation.
struct Opcodes {
  int set, compare_set, get, add, check, wait, num_keys, watch, remove, append, multi_get,
      multi_set, cancel, push, pop, length, list, barrier;
};
inline constexpr Opcodes kA = {0, 1, 2, 3, 4, 5, 6, 7, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1};
inline constexpr Opcodes kB = {0, 1, 2, 3, 4, 5, 6, -1, 7, 8, 9, 10, 11, -1, -1, -1, -1, -1};
inline constexpr Opcodes kC = {1, 2, 3, 4, 5, 6, 7, -1, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18};

inline std::string Message(int opcode, std::string_view fields = {}) {
  std::string bytes(1, static_cast<char>(opcode));
  bytes.append(fields);
  return bytes;
}

}  // namespace ddprun::wire
