#include "rendezvous/store/protocol.h"

namespace ddprun {

std::string_view DialectName(Dialect dialect) {
  switch (dialect) {
    case Dialect::kUndecided:
      return "not known yet";
    case Dialect::kLegacy:
      return "torch 1.9 to 2.1";
    case Dialect::kA:
      return "torch 1.9 to 2.0";
    case Dialect::kB:
      return "torch 2.1";
    case Dialect::kC:
      break;
  }
  return "torch 2.2 or newer";
}

std::string_view ItemReader::Next() {
  const std::size_t size = ReadU64(rest_);
  const std::string_view item = rest_.substr(kLengthSize, size);
  rest_.remove_prefix(kLengthSize + size);
  return item;
}

std::uint64_t ReadU64(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < kLengthSize; ++i) {
    number |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return number;
}

std::array<char, kLengthSize> EncodeU64(std::uint64_t number) {
  std::array<char, kLengthSize> bytes{};
  for (std::size_t i = 0; i < kLengthSize; ++i) {
    bytes[i] = static_cast<char>(static_cast<unsigned char>(number >> (8 * i)));
  }
  return bytes;
}

OperationLayout LayoutOf(Operation operation) {
  static constexpr std::array<OperationLayout, 20> kLayouts = {{
      {"VALIDATE", "u"},  {"SET", "kv"},       {"COMPARE_SET", "kvv"}, {"GET", "k"},
      {"ADD", "kn"},      {"CHECK", "K"},      {"WAIT", "K"},          {"GETNUMKEYS", ""},
      {"WATCH_KEY", "k"}, {"DELETE_KEY", "k"}, {"APPEND", "kv"},       {"MULTI_GET", "K"},
      {"MULTI_SET", "P"}, {"CANCEL_WAIT", ""}, {"PING", "u"},          {"QUEUE_PUSH", "kv"},
      {"QUEUE_POP", "k"}, {"QUEUE_LEN", "k"},  {"LIST_KEYS", ""},      {"BARRIER", "kn"},
  }};
  return kLayouts[static_cast<std::size_t>(operation)];
}

}  // namespace ddprun
