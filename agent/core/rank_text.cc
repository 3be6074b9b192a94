#include "agent/core/rank_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace ddprun {

std::string DescribeRanks(std::vector<std::uint32_t> ranks) {
  constexpr std::size_t kMaxRuns = 8;
  std::sort(ranks.begin(), ranks.end());
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  std::size_t runs = 0;
  for (std::size_t i = 0; i < ranks.size(); ++runs) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] - ranks[last] <= 1) {
      ++last;
    }
    if (runs == kMaxRuns) {
      return text + ", ...";
    }
    text += fmt::format("{}{}", runs == 0 ? "" : ", ", ranks[i]);
    if (ranks[last] != ranks[i]) {
      text += fmt::format("-{}", ranks[last]);
    }
    i = last + 1;
  }
  return text;
}

}  // namespace ddprun
