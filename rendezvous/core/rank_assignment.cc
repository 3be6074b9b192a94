#include "rendezvous/core/rank_assignment.h"

#include <map>

namespace ddprun {

std::vector<RankAssignment> AssignRanks(const std::vector<NodeDesc>& nodes) {
  std::vector<RankAssignment> assignments;
  std::map<std::string, std::uint32_t> role_sizes;
  std::uint32_t world_size = 0;
  for (const NodeDesc& node : nodes) {
    RankAssignment assignment;
    assignment.group_rank = static_cast<std::uint32_t>(assignments.size());
    assignment.group_world_size = static_cast<std::uint32_t>(nodes.size());
    assignment.local_world_size = node.local_world_size;
    assignment.global_rank_base = world_size;
    assignment.role_rank_base = role_sizes[node.role];
    world_size += node.local_world_size;
    role_sizes[node.role] += node.local_world_size;
    assignments.push_back(assignment);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    assignments[i].world_size = world_size;
    assignments[i].role_world_size = role_sizes[nodes[i].role];
  }
  return assignments;
}

}  // namespace ddprun
