#pragma once

// ByteBuffer: bytes that grow at the end and are consumed at the front. Unlike std::string it does
// not clear new space before it is read into, and growing a large one moves pages (realloc uses
// mremap) instead of copying. Running out of memory is fatal, as everywhere else.

#include <cstddef>
#include <span>
#include <string_view>

namespace ddprun {

class ByteBuffer {
 public:
  ByteBuffer() = default;
  ByteBuffer(ByteBuffer&& other) noexcept;
  ByteBuffer& operator=(ByteBuffer&& other) noexcept;
  ByteBuffer(const ByteBuffer&) = delete;
  ByteBuffer& operator=(const ByteBuffer&) = delete;
  ~ByteBuffer();

  std::string_view view() const { return {data_ + begin_, end_ - begin_}; }
  std::size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  std::size_t capacity() const { return capacity_; }

  // Free space of at least `room` bytes behind the bytes held; Commit() says how much was filled.
  // Doubles the capacity when it has to grow, so that a loop of appends stays linear.
  std::span<char> Prepare(std::size_t room);
  void Commit(std::size_t filled) { end_ += filled; }

  void Append(std::string_view bytes);
  void Consume(std::size_t count);  // Drops bytes from the front.
  void Truncate(std::size_t size);  // Drops bytes from the end.
  void ShrinkToFit();               // Gives unused capacity back.

 private:
  void Reallocate(std::size_t capacity);

  char* data_ = nullptr;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace ddprun
