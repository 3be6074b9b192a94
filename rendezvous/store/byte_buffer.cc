#include "rendezvous/store/byte_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "rendezvous/base/check.h"

namespace ddprun {

ByteBuffer::ByteBuffer(ByteBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      begin_(std::exchange(other.begin_, 0)),
      end_(std::exchange(other.end_, 0)),
      capacity_(std::exchange(other.capacity_, 0)) {}

ByteBuffer& ByteBuffer::operator=(ByteBuffer&& other) noexcept {
  if (this != &other) {
    std::free(data_);
    data_ = std::exchange(other.data_, nullptr);
    begin_ = std::exchange(other.begin_, 0);
    end_ = std::exchange(other.end_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
  }
  return *this;
}

ByteBuffer::~ByteBuffer() {
  std::free(data_);
}

std::span<char> ByteBuffer::Prepare(std::size_t room) {
  if (capacity_ - end_ < room && begin_ > 0 && begin_ >= size()) {
    // Moving less than was consumed keeps the total cost linear.
    std::memmove(data_, data_ + begin_, size());
    end_ -= begin_;
    begin_ = 0;
  }
  if (capacity_ - end_ < room) {
    constexpr std::size_t kSmallest = 64;
    Reallocate(std::max({kSmallest, capacity_ * 2, end_ + room}));
  }
  return {data_ + end_, capacity_ - end_};
}

void ByteBuffer::Append(std::string_view bytes) {
  if (!bytes.empty()) {
    std::memcpy(Prepare(bytes.size()).data(), bytes.data(), bytes.size());
    Commit(bytes.size());
  }
}

void ByteBuffer::Consume(std::size_t count) {
  DDP_CHECK(count <= size());
  begin_ += count;
  if (begin_ == end_) {
    begin_ = 0;
    end_ = 0;
  }
}

void ByteBuffer::Truncate(std::size_t size) {
  DDP_CHECK(size <= this->size());
  end_ = begin_ + size;
}

void ByteBuffer::ShrinkToFit() {
  if (end_ == 0) {
    std::free(std::exchange(data_, nullptr));
    capacity_ = 0;
  } else if (end_ < capacity_) {
    Reallocate(end_);
  }
}

void ByteBuffer::Reallocate(std::size_t capacity) {
  char* const data = static_cast<char*>(std::realloc(data_, capacity));
  DDP_CHECK(data != nullptr);
  data_ = data;
  capacity_ = capacity;
}

}  // namespace ddprun
