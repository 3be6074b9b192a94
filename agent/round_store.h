#pragma once

// RoundStoreHost: what listens at MASTER_ADDR:MASTER_PORT during a round. Normally a TCPStore
// server of ours, fresh for each round; with TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 the rank-0 worker
// serves, and the port is only kept free for it. Owned by NodeAgent, main thread.

#include <cstdint>
#include <memory>
#include <string>

#include "rendezvous/base/error.h"
#include "rendezvous/client/rendezvous_handler.h"
#include "rendezvous/store/tcp_store_server.h"

namespace asio {
class io_context;
}  // namespace asio

namespace ddprun {

struct RoundStoreSettings {
  TcpStoreSettings server;         // Its port 0: a new free one for every round.
  std::string advertised_address;  // MASTER_ADDR, as the workers shall read it.
  bool serve = true;               // False: only reserve the port for the rank-0 worker.
};

class RoundStoreHost {
 public:
  RoundStoreHost(asio::io_context& io, RoundStoreSettings settings);
  RoundStoreHost(const RoundStoreHost&) = delete;
  RoundStoreHost& operator=(const RoundStoreHost&) = delete;
  ~RoundStoreHost();

  // Closes the previous round's store and opens the next one, listening and empty.
  Expected<RoundStore> Open();
  // Ends every connection and frees the port.
  void Close();

 private:
  class Reservation;

  asio::io_context& io_;
  RoundStoreSettings settings_;
  std::unique_ptr<TcpStoreServer> server_;
  std::unique_ptr<Reservation> reservation_;
};

}  // namespace ddprun
