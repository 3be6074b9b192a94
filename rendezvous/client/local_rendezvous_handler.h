#pragma once

// The in-process form of RendezvousHandler: a job of one node, whose rounds are complete as soon as
// it asks. No port is opened for the rendezvous itself.

#include "rendezvous/client/rendezvous_handler.h"

namespace ddprun {

class LocalRendezvousHandler final : public RendezvousHandler {
 public:
  void NextRendezvous(const NodeDesc& node, OpenStore open_store, Callback done) override;

 private:
  std::uint64_t next_round_ = 0;
};

}  // namespace ddprun
