#include "rendezvous/store/outbox.h"

#include <algorithm>

#include "rendezvous/base/check.h"

namespace ddprun {
namespace {

// What an idle outbox may keep.
constexpr std::size_t kKeptBytes = std::size_t{1} << 20U;

}  // namespace

void Outbox::Append(std::string_view bytes) {
  plain_ += bytes;
  unsent_ += bytes.size();
}

void Outbox::Append(const Value& value) {
  DDP_CHECK(value.shared());
  shared_.push_back(Shared{plain_.size(), value});
  unsent_ += value.size();
}

std::size_t Outbox::owned_bytes() const {
  return plain_.capacity() + shared_.capacity() * sizeof(Shared);
}

std::span<const std::string_view> Outbox::Gather(
    std::size_t max_bytes, std::array<std::string_view, kMaxPieces>& pieces) const {
  std::size_t count = 0;
  const auto take = [&](std::string_view piece) {
    piece = piece.substr(0, max_bytes);
    max_bytes -= piece.size();
    if (!piece.empty() && count < pieces.size()) {
      pieces[count++] = piece;
    }
  };
  std::size_t plain = plain_sent_;
  std::size_t skip = value_sent_;
  const std::string_view bytes = plain_;
  for (std::size_t i = shared_sent_; i < shared_.size() && count < kMaxPieces && max_bytes > 0;
       ++i) {
    take(bytes.substr(plain, shared_[i].plain_end - plain));
    plain = shared_[i].plain_end;
    if (count < kMaxPieces) {
      take(shared_[i].value.view().substr(skip));
    }
    skip = 0;
  }
  if (count < kMaxPieces) {
    take(bytes.substr(plain));
  }
  return {pieces.data(), count};
}

void Outbox::Consume(std::size_t count) {
  DDP_CHECK(count <= unsent_);
  unsent_ -= count;
  while (count > 0) {
    const bool value_follows = shared_sent_ < shared_.size();
    const std::size_t plain_end = value_follows ? shared_[shared_sent_].plain_end : plain_.size();
    const std::size_t plain = std::min(count, plain_end - plain_sent_);
    plain_sent_ += plain;
    count -= plain;
    if (plain_sent_ < plain_end || !value_follows) {
      continue;
    }
    Value& value = shared_[shared_sent_].value;
    const std::size_t part = std::min(count, value.size() - value_sent_);
    value_sent_ += part;
    count -= part;
    if (value_sent_ == value.size()) {
      value = Value();  // Lets go of the memory at once.
      ++shared_sent_;
      value_sent_ = 0;
    }
  }
  if (unsent_ > 0) {
    return;
  }
  plain_.clear();
  shared_.clear();
  plain_sent_ = 0;
  shared_sent_ = 0;
  value_sent_ = 0;
  if (owned_bytes() > kKeptBytes) {
    *this = Outbox();
  }
}

}  // namespace ddprun
