#include "rendezvous/core/rank_assignment.h"

#include "tests/support/catch.h"

namespace ddprun {
namespace {

TEST_CASE("one agent has all ranks") {
  const auto ranks = AssignRanks({{"default", 4}});
  REQUIRE(ranks.size() == 1);
  CHECK(ranks[0] == RankAssignment{0, 1, 4, 0, 4, 0, 4});
}

TEST_CASE("agents of different size and role are numbered as torch numbers them") {
  // Conformance row 33: roles x(2), y(2), x(1).
  const auto ranks = AssignRanks({{"x", 2}, {"y", 2}, {"x", 1}});
  REQUIRE(ranks.size() == 3);
  CHECK(ranks[0] == RankAssignment{0, 3, 2, 0, 5, 0, 3});
  CHECK(ranks[1] == RankAssignment{1, 3, 2, 2, 5, 0, 2});
  CHECK(ranks[2] == RankAssignment{2, 3, 1, 4, 5, 2, 3});
}

}  // namespace
}  // namespace ddprun
