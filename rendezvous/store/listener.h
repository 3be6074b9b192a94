#pragma once

// Opens the listening sockets of a TcpStoreServer and keeps the descriptor that is spent when the
// process runs out of them.

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <vector>

#include "rendezvous/base/error.h"
#include "rendezvous/store/tcp_store_server.h"

namespace ddprun {

// One or two acceptors, all on the same port, listening, close-on-exec and non-blocking. What
// accepted sockets inherit is set on them: TCP_NODELAY, and keep-alive after 60 s, then six probes
// 10 s apart, so that a host which vanished holds no descriptor for ever.
Expected<std::vector<asio::ip::tcp::acceptor>> OpenListeners(asio::io_context& io,
                                                             const TcpStoreSettings& settings);

// The kernel's bound on connections that wait to be accepted (net.core.somaxconn); 0 if unknown.
std::size_t KernelAcceptQueue();

// A descriptor held in reserve.
class SpareDescriptor {
 public:
  SpareDescriptor() { Restore(); }
  ~SpareDescriptor() { Spend(); }
  SpareDescriptor(const SpareDescriptor&) = delete;
  SpareDescriptor& operator=(const SpareDescriptor&) = delete;

  bool Restore();  // False: the process still has no descriptor free.
  void Spend();    // One descriptor is free now.

 private:
  int fd_ = -1;
};

}  // namespace ddprun
