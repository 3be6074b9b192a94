#include "agent/round_store.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "agent/process/unique_fd.h"
#include "rendezvous/base/log.h"

namespace ddprun {

// A bound socket that does not listen. Its port is given to nobody who asks for any port, and yet
// the worker can bind it: Linux lets two sockets with SO_REUSEADDR share a port as long as at most
// one of them listens (socket(7)).
class RoundStoreHost::Reservation {
 public:
  static Expected<std::unique_ptr<Reservation>> Make(std::uint16_t port) {
    auto reservation = std::unique_ptr<Reservation>(new Reservation());
    const Expected<void> bound = reservation->Bind(port);
    if (!bound) {
      return tl::unexpected<Error>(bound.error());
    }
    return reservation;
  }
  std::uint16_t port() const { return port_; }

 private:
  Expected<void> Bind(std::uint16_t port) {
    int error = BindFamily(AF_INET6, port);
    if (error == EAFNOSUPPORT || error == EADDRNOTAVAIL) {
      error = BindFamily(AF_INET, port);
    }
    if (error != 0) {
      return Fail(error, fmt::format("reserve port {} for the worker with rank 0", port));
    }
    return {};
  }

  int BindFamily(int family, std::uint16_t port) {
    socket_ = UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket_) {
      return errno;
    }
    const int on = 1;
    const int off = 0;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_storage address{};
    socklen_t size = 0;
    if (family == AF_INET6) {
      ::setsockopt(socket_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
      auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(port);
      size = sizeof(v6);
    } else {
      auto& v4 = reinterpret_cast<sockaddr_in&>(address);
      v4.sin_family = AF_INET;
      v4.sin_port = htons(port);
      size = sizeof(v4);
    }
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket_.get(), generic, size) != 0 ||
        ::getsockname(socket_.get(), generic, &size) != 0) {
      return errno;
    }
    port_ = ntohs(family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                     : reinterpret_cast<sockaddr_in&>(address).sin_port);
    return 0;
  }

  UniqueFd socket_;
  std::uint16_t port_ = 0;
};

RoundStoreHost::RoundStoreHost(asio::io_context& io, RoundStoreSettings settings)
    : io_(io), settings_(std::move(settings)) {}

RoundStoreHost::~RoundStoreHost() = default;

Expected<RoundStore> RoundStoreHost::Open() {
  Close();
  if (!settings_.serve) {
    auto reservation = Reservation::Make(settings_.server.port);
    if (!reservation) {
      return tl::unexpected<Error>(reservation.error());
    }
    reservation_ = std::move(*reservation);
    return RoundStore{settings_.advertised_address, reservation_->port()};
  }
  auto server = TcpStoreServer::Listen(io_, settings_.server,
                                       [](std::string line) { LogWarning("{}", line); });
  if (!server) {
    return tl::unexpected<Error>(server.error());
  }
  server_ = std::move(*server);
  return RoundStore{settings_.advertised_address, server_->port()};
}

void RoundStoreHost::Close() {
  if (server_) {
    server_->Stop();
  }
  server_.reset();
  reservation_.reset();
}

}  // namespace ddprun
