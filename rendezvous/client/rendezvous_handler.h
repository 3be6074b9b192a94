#pragma once

// RendezvousHandler: how an agent becomes part of a round (torch:
// elastic.rendezvous.RendezvousHandler). The agent calls it on its own thread; the answer comes on
// that thread too, at once or later.

#include <cstdint>
#include <functional>
#include <string>

#include "rendezvous/base/error.h"
#include "rendezvous/core/rank_assignment.h"

namespace ddprun {

// What an agent learns when its round is complete.
struct RendezvousInfo {
  std::uint64_t round = 0;
  RankAssignment ranks;
  std::string master_addr;  // Where the workers of all nodes find the round's store.
  std::uint16_t master_port = 0;
};

// The store of a round, served by the agent with group rank 0. It is empty and listens before the
// round's workers start, and ends with the round.
struct RoundStore {
  std::string address;
  std::uint16_t port = 0;
};

class RendezvousHandler {
 public:
  using Callback = std::function<void(Expected<RendezvousInfo>)>;
  using OpenStore = std::function<Expected<RoundStore>()>;

  RendezvousHandler() = default;
  RendezvousHandler(const RendezvousHandler&) = delete;
  RendezvousHandler& operator=(const RendezvousHandler&) = delete;
  virtual ~RendezvousHandler() = default;

  // Joins the next round. If this agent gets group rank 0, `open_store` is called for the store to
  // publish.
  virtual void NextRendezvous(const NodeDesc& node, OpenStore open_store, Callback done) = 0;
};

}  // namespace ddprun
