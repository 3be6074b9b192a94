#pragma once

// UniqueFd: the only owner of a file descriptor. A raw int never crosses a function of ours; get()
// is for the system call at hand.

#include <unistd.h>

#include <utility>

namespace ddprun {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Reset(other.Release());
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { Reset(); }

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }

  // Gives the descriptor away: to Asio, say, which closes it itself.
  int Release() { return std::exchange(fd_, -1); }

  // close(2) is never retried: on Linux the descriptor is gone even after EINTR.
  void Reset(int fd = -1) {
    if (fd_ >= 0) {
      ::close(fd_);
    }
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace ddprun
