#pragma once

// Which ranks the workers of each agent get in a round. Pure; the rules are those of torch's
// SimpleElasticAgent (spec: torch 2.15.0, `_assign_worker_ranks`).

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun {

// What an agent says of itself when it joins a round.
struct NodeDesc {
  std::string role;                    // `--role`
  std::uint32_t local_world_size = 0;  // Workers on this agent, at least 1.
};

// The place of one agent's workers in the round. A worker's own ranks are base + local rank.
struct RankAssignment {
  std::uint32_t group_rank = 0;        // Rank of the agent in the round.
  std::uint32_t group_world_size = 0;  // Agents in the round.
  std::uint32_t local_world_size = 0;
  std::uint32_t global_rank_base = 0;
  std::uint32_t world_size = 0;  // Workers in the round.
  std::uint32_t role_rank_base = 0;
  std::uint32_t role_world_size = 0;  // Workers of this agent's role in the round.

  friend bool operator==(const RankAssignment&, const RankAssignment&) = default;
};

// `nodes` in the order of their group ranks; the result has one element per node, in the same
// order. Global ranks are numbered through all agents; role ranks through the agents of one role;
// roles do not influence global ranks.
std::vector<RankAssignment> AssignRanks(const std::vector<NodeDesc>& nodes);

}  // namespace ddprun
