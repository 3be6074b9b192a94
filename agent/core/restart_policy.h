#pragma once

// RestartPolicy: whether a failed group is started again. Plain torchrun counting: each failure of
// a local worker spends one of `max_restarts`; nothing else does (torch 2.15.0,
// SimpleElasticAgent).

#include <cstdint>

namespace ddprun {

class RestartPolicy {
 public:
  explicit RestartPolicy(std::uint32_t max_restarts) : max_restarts_(max_restarts) {}

  // Spends one restart; false when none is left.
  bool SpendOne() {
    if (spent_ == max_restarts_) {
      return false;
    }
    ++spent_;
    return true;
  }

  // TORCHELASTIC_RESTART_COUNT of the attempt under way.
  std::uint32_t restart_count() const { return spent_; }
  std::uint32_t remaining() const { return max_restarts_ - spent_; }

 private:
  std::uint32_t max_restarts_;
  std::uint32_t spent_ = 0;
};

}  // namespace ddprun
