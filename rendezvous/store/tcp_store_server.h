#pragma once

// TcpStoreServer: a key-value server that unmodified torch workers (1.9 to 2.15) use as their
// TCPStore. One server serves one attempt of a job: it starts empty, and a new attempt gets a new
// server, because torch 2.6 and newer uses the same keys again (docs/protocol.md).
//
// Owned by the agent. Everything runs on the thread that runs the given io_context, without threads
// of its own and without ever blocking: no name is looked up, no client can make another one wait.
// Memory is bounded by TcpStoreSettings; a client beyond a limit is disconnected, which is the only
// refusal the protocol has, and a log line says who and why.
//
// A descriptor is needed per connection (torch 1.x: two per client), so the caller raises
// RLIMIT_NOFILE first. When descriptors run out, new connections wait in the kernel's queue.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "rendezvous/base/error.h"
#include "rendezvous/store/protocol.h"

namespace asio {
class io_context;
}

namespace ddprun {

enum class StoreBind : std::uint8_t {
  kLoopback,  // 127.0.0.1 and ::1, on the same port. For jobs of one node.
  kWildcard,  // Every address of both families; IPv4 only where IPv6 is switched off.
  kAddress,   // TcpStoreSettings::address alone.
};

struct TcpStoreSettings {
  DialectMode mode = DialectMode::kAuto;
  bool legacy_is_2_1 = false;  // Legacy clients are torch 2.1: opcode 8 is APPEND.
  ParseLimits parse;           // Bounds on one request.
  std::size_t max_store = std::size_t{4} << 30U;  // Bytes stored and bytes of requests under way.
  std::size_t max_backlog = std::size_t{256}
                            << 20U;  // Bytes of replies that a client has not read.
  StoreBind bind = StoreBind::kLoopback;
  std::string address;                   // For kAddress: a numeric IPv4 or IPv6 address.
  std::uint16_t port = 0;                // 0: any free one; see port().
  std::size_t expected_connections = 0;  // Warn if the kernel's accept queue is shorter than this.
};

class TcpStoreServer {
 public:
  // Listens from the moment it returns; clients are served while `io` runs. Fails if the address is
  // not numeric or not of this machine, or if the port is taken: the error names who holds it.
  // `log_line` gets one line (no newline) per refused connection, at most ten at once and one per
  // second; it is called on the thread of `io` and must not call back into the server.
  static Expected<std::unique_ptr<TcpStoreServer>> Listen(
      asio::io_context& io, TcpStoreSettings settings, std::function<void(std::string)> log_line);

  ~TcpStoreServer();  // Stops. Must happen before `io` is destroyed.
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  std::uint16_t port() const;

  // Frees the port and closes every connection, at once. End the workers first: a torch 1.x worker
  // whose second connection is closed spins or aborts. May be called again.
  void Stop();

  std::size_t connections() const;

  // Client objects that were made with a world size and have connected, for progress lines.
  std::size_t joined_clients() const;

  std::size_t num_keys() const;

 private:
  class Core;
  explicit TcpStoreServer(std::shared_ptr<Core> core);

  std::shared_ptr<Core> core_;
};

}  // namespace ddprun
