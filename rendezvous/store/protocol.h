#pragma once

// The vocabulary of the TCPStore wire protocol (docs/protocol.md): operations, the three opcode
// numberings, a parsed request, and the encoding of replies. Pure.
//
// All integers are little-endian and unaligned; a string or a value is a u64 length and its bytes.
// There is no frame length, so only parsing tells where a message ends.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "rendezvous/store/byte_buffer.h"

namespace ddprun {

enum class Operation : std::uint8_t {
  kValidate,
  kSet,
  kCompareSet,
  kGet,
  kAdd,
  kCheck,
  kWait,
  kGetNumKeys,
  kWatchKey,
  kDeleteKey,
  kAppend,
  kMultiGet,
  kMultiSet,
  kCancelWait,
  kPing,
  kQueuePush,
  kQueuePop,
  kQueueLen,
  kListKeys,
  kBarrier,
};

// What the server knows of a connection's numbering. A is torch 1.9 to 2.0, B is 2.1, C is 2.2 and
// newer. A and B differ only from opcode 7 on, so most connections stay kLegacy.
enum class Dialect : std::uint8_t { kUndecided, kLegacy, kA, kB, kC };

// For log lines: "torch 2.2 or newer".
std::string_view DialectName(Dialect dialect);

// Which connections the server takes at all.
enum class DialectMode : std::uint8_t { kAuto, kOnly2x, kOnly1x };

// Bounds on one request; what goes beyond is refused by closing the connection. The defaults are
// looser than torch's libuv server (8 KiB, 8 MiB, 131072 keys), because torch 1.x had none.
struct ParseLimits {
  std::size_t max_key = std::size_t{64} << 10U;
  std::size_t max_value = std::size_t{64} << 20U;
  std::size_t max_keys = 131072;
  std::size_t max_request = std::size_t{512} << 20U;
};

// One whole message. The views point into the bytes that were parsed and live as long as these.
struct Request {
  Operation operation = Operation::kValidate;
  std::size_t size = 0;       // Bytes of the message; also the count to consume.
  std::string_view key;       // Unused fields stay empty.
  std::string_view expected;  // COMPARE_SET only.
  std::string_view value;     // COMPARE_SET: the desired value.
  std::int64_t number = 0;    // ADD: delta; BARRIER: world size; PING: nonce.
  std::size_t count = 0;      // Lists: number of keys, or of pairs.
  std::string_view items;     // Lists: the encoded elements, already checked; see ItemReader.

  // Set by the caller when the value lies at the end of this buffer and may be kept without a copy.
  std::shared_ptr<ByteBuffer> owner;
};

// Walks through Request::items: key after key, or key, value, key, value.
class ItemReader {
 public:
  explicit ItemReader(std::string_view items) : rest_(items) {}
  std::string_view Next();

 private:
  std::string_view rest_;
};

// The first five bytes of every dialect C connection: opcode VALIDATE and the magic 0x3C85F7CE.
inline constexpr std::array<char, 5> kHello = {'\x00', '\xce', '\xf7', '\x85', '\x3c'};

// The one-byte replies.
inline constexpr char kReady = '\x00';         // CHECK.
inline constexpr char kNotReady = '\x01';      // CHECK.
inline constexpr char kStopWaiting = '\x00';   // WAIT, BARRIER.
inline constexpr char kWaitCanceled = '\x01';  // CANCEL_WAIT.
inline constexpr char kKeyUpdated = '\x00';    // Pushed to watchers.
inline constexpr char kKeyCreated = '\x01';    // Pushed to watchers.
inline constexpr char kKeyDeleted = '\x02';    // Pushed to watchers.
inline constexpr char kWatchRegistered = '\x03';

inline constexpr std::size_t kLengthSize = 8;  // Of a length, a count, an i64.

// Little-endian, whatever the machine is.
std::uint64_t ReadU64(std::string_view bytes);  // The first eight bytes.
std::array<char, kLengthSize> EncodeU64(std::uint64_t number);

inline std::array<char, kLengthSize> EncodeI64(std::int64_t number) {
  return EncodeU64(static_cast<std::uint64_t>(number));
}

template <std::size_t kSize>
std::string_view AsView(const std::array<char, kSize>& bytes) {
  return {bytes.data(), bytes.size()};
}

// How an operation travels: its name for log lines, and its fields in order. 'k' is a key, 'v' a
// value, 'n' an i64, 'u' a u32, 'K' a list of keys, 'P' a list of key and value pairs.
struct OperationLayout {
  std::string_view name;
  std::string_view fields;
};
OperationLayout LayoutOf(Operation operation);

}  // namespace ddprun
