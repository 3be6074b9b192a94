#pragma once

// Outbox: replies of one connection that are not sent yet: plain bytes, and large values by
// reference. Pure; the session turns its pieces into one gathering write.

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/value.h"

namespace ddprun {

class Outbox {
 public:
  static constexpr std::size_t kMaxPieces = 64;

  void Append(std::string_view bytes);
  void Append(const Value& value);  // The value must be shared().

  std::size_t size() const { return unsent_; }
  bool empty() const { return unsent_ == 0; }

  // The memory that belongs to this outbox alone.
  std::size_t owned_bytes() const;

  // The next bytes to send, at most `max_bytes` in at most kMaxPieces pieces. The pieces are valid
  // until the outbox changes.
  std::span<const std::string_view> Gather(std::size_t max_bytes,
                                           std::array<std::string_view, kMaxPieces>& pieces) const;

  // `count` bytes from the front are sent. An empty outbox keeps its memory for reuse.
  void Consume(std::size_t count);

 private:
  // A value in the stream, behind the plain bytes up to `plain_end`.
  struct Shared {
    std::size_t plain_end;
    Value value;
  };

  std::string plain_;
  std::size_t plain_sent_ = 0;
  std::vector<Shared> shared_;
  std::size_t shared_sent_ = 0;  // Values that are completely sent.
  std::size_t value_sent_ = 0;   // Bytes of the next value that are sent.
  std::size_t unsent_ = 0;
};

}  // namespace ddprun
