#include "rendezvous/core/rank_assignment.h"

#include <rapidcheck.h>

#include <map>
#include <set>

#include "tests/support/catch.h"

namespace ddprun {
namespace {

std::vector<NodeDesc> AnyNodes() {
  const auto sizes =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange(1U, 9U)));
  std::vector<NodeDesc> nodes;
  for (const std::uint32_t size : sizes) {
    nodes.push_back({std::string(1, *rc::gen::inRange('x', 'z')), size});
  }
  return nodes;
}

TEST_CASE("global ranks are 0..n-1 without a gap, role ranks too within each role") {
  CHECK(rc::check([] {
    const std::vector<NodeDesc> nodes = AnyNodes();
    const std::vector<RankAssignment> ranks = AssignRanks(nodes);
    RC_ASSERT(ranks.size() == nodes.size());
    std::uint32_t next = 0;
    std::map<std::string, std::set<std::uint32_t>> role_ranks;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      RC_ASSERT(ranks[i].group_rank == i);
      RC_ASSERT(ranks[i].global_rank_base == next);
      next += nodes[i].local_world_size;
      for (std::uint32_t worker = 0; worker < nodes[i].local_world_size; ++worker) {
        RC_ASSERT(role_ranks[nodes[i].role].insert(ranks[i].role_rank_base + worker).second);
      }
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto& of_role = role_ranks[nodes[i].role];
      RC_ASSERT(ranks[i].world_size == next);
      RC_ASSERT(ranks[i].role_world_size == of_role.size());
      RC_ASSERT(*of_role.rbegin() + 1 == of_role.size());
    }
  }));
}

}  // namespace
}  // namespace ddprun
