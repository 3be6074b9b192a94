#pragma once

// Ranks in words. Pure.

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun {

// "rank 3", "ranks 0-6, 8"; sorted, runs joined, at most eight runs and then "...".
std::string DescribeRanks(std::vector<std::uint32_t> ranks);

}  // namespace ddprun
