#include "rendezvous/client/local_rendezvous_handler.h"

#include <utility>

namespace ddprun {

void LocalRendezvousHandler::NextRendezvous(const NodeDesc& node, OpenStore open_store,
                                            Callback done) {
  Expected<RoundStore> store = open_store();
  if (!store) {
    done(tl::unexpected<Error>(std::move(store.error())));
    return;
  }
  RendezvousInfo info;
  info.round = next_round_++;
  info.ranks = AssignRanks({node}).front();
  info.master_addr = std::move(store->address);
  info.master_port = store->port;
  done(std::move(info));
}

}  // namespace ddprun
