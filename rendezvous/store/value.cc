#include "rendezvous/store/value.h"

#include <utility>

namespace ddprun {

Value::Value(std::string_view bytes) {
  if (bytes.size() < kShareFrom) {
    small_ = bytes;
    return;
  }
  large_ = std::make_shared<ByteBuffer>();
  large_->Append(bytes);
}

Value::Value(std::shared_ptr<ByteBuffer> owner, std::size_t offset)
    : large_(std::move(owner)), offset_(offset) {}

std::string_view Value::view() const {
  return large_ ? large_->view().substr(offset_) : std::string_view(small_);
}

void Value::Assign(std::string_view bytes) {
  // A value that is overwritten again and again keeps its place, but no memory that it once needed.
  constexpr std::size_t kKeptCapacity = 64;
  const bool fits = bytes.size() < kShareFrom && small_.capacity() <= kKeptCapacity + bytes.size();
  if (large_ || !fits) {
    *this = Value(bytes);
  } else {
    small_.assign(bytes);
  }
}

void Value::Append(std::string_view bytes) {
  if (large_ && large_.use_count() == 1) {
    large_->Append(bytes);
    return;
  }
  if (!large_ && small_.size() + bytes.size() < kShareFrom) {
    small_ += bytes;
    return;
  }
  auto joined = std::make_shared<ByteBuffer>();
  joined->Append(view());
  joined->Append(bytes);
  *this = Value(std::move(joined), 0);
}

}  // namespace ddprun
