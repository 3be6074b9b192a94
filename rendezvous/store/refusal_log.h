#pragma once

// RefusalLog: decides which log lines are worth printing when a port scan or a broken job makes a
// server refuse connection after connection. Pure.

#include <cstddef>
#include <optional>
#include <string>

#include "rendezvous/base/clock.h"

namespace ddprun {

class RefusalLog {
 public:
  static constexpr std::size_t kBurst = 10;  // Lines that may follow each other at once.
  static constexpr Duration kInterval = std::chrono::seconds(1);  // Then one line per interval.

  // The line to print, with the number of lines dropped before it if there were any; nullopt if
  // this one is to be dropped too.
  std::optional<std::string> Filter(std::string line, TimePoint now);

 private:
  std::size_t tokens_ = kBurst;
  std::optional<TimePoint> last_refill_;
  std::size_t dropped_ = 0;
};

}  // namespace ddprun
