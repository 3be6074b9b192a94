#pragma once

// The time that machines are stepped with. The shell around a machine reads the monotonic clock
// once per event.

#include <chrono>

namespace ddprun {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

inline TimePoint MonotonicNow() {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

}  // namespace ddprun
