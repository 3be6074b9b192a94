#pragma once

// Value: the bytes of one stored value. Small ones are held in place; large ones are shared, so
// that a reply can refer to them while it is being sent, without a copy, even if the key is
// overwritten or deleted meanwhile.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "rendezvous/store/byte_buffer.h"

namespace ddprun {

class Value {
 public:
  // From this size on a value is shared instead of copied into replies.
  static constexpr std::size_t kShareFrom = 4096;

  Value() = default;
  explicit Value(std::string_view bytes);

  // The bytes of `owner` from `offset` to its end, without copying them.
  Value(std::shared_ptr<ByteBuffer> owner, std::size_t offset);

  std::string_view view() const;
  std::size_t size() const { return view().size(); }
  bool shared() const { return large_ != nullptr; }

  // Replaces the bytes by a copy of others, which do not lie in this value.
  void Assign(std::string_view bytes);

  // Adds at the end, in place unless somebody else still refers to the bytes.
  void Append(std::string_view bytes);

 private:
  std::string small_;
  std::shared_ptr<ByteBuffer> large_;  // When set, small_ is empty.
  std::size_t offset_ = 0;
};

}  // namespace ddprun
