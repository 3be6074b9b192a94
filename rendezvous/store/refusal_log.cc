#include "rendezvous/store/refusal_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ddprun {

std::optional<std::string> RefusalLog::Filter(std::string line, TimePoint now) {
  if (!last_refill_) {
    last_refill_ = now;
  }
  const auto intervals = (now - *last_refill_) / kInterval;
  if (intervals > 0) {
    tokens_ = std::min<std::size_t>(kBurst, tokens_ + static_cast<std::size_t>(intervals));
    *last_refill_ += intervals * kInterval;
  }
  if (tokens_ == 0) {
    ++dropped_;
    return std::nullopt;
  }
  --tokens_;
  const std::size_t dropped = std::exchange(dropped_, 0);
  return dropped == 0 ? std::move(line)
                      : fmt::format("{} ({} earlier lines were dropped)", line, dropped);
}

}  // namespace ddprun
