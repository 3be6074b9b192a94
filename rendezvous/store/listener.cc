#include "rendezvous/store/listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio/ip/address.hpp>
#include <cerrno>
#include <fstream>
#include <limits>
#include <utility>

#include "rendezvous/store/port_owner.h"

namespace ddprun {
namespace {

using asio::ip::tcp;
using Acceptors = std::vector<tcp::acceptor>;

constexpr int kKeepAliveIdleSeconds = 60;
constexpr int kKeepAliveIntervalSeconds = 10;
constexpr int kKeepAliveProbes = 6;
constexpr int kPortTries = 32;  // A port that is free on one family may be taken on the other.

void SetOption(tcp::acceptor& acceptor, int level, int name, int value) {
  // None of these can fail on a TCP socket, and none is needed for correctness.
  ::setsockopt(acceptor.native_handle(), level, name, &value, sizeof(value));
}

void SetOptions(tcp::acceptor& acceptor) {
  SetOption(acceptor, SOL_SOCKET, SO_REUSEADDR, 1);
  SetOption(acceptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(acceptor, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(acceptor, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  SetOption(acceptor, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  SetOption(acceptor, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
}

// Asio would open the socket without SOCK_CLOEXEC.
Expected<tcp::acceptor> OpenSocket(asio::io_context& io, const tcp& protocol) {
  const int fd = ::socket(protocol.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    return Fail(errno, "open a socket for the store");
  }
  tcp::acceptor acceptor(io);
  asio::error_code error;
  acceptor.assign(protocol, fd, error);
  if (error) {
    ::close(fd);
    return Fail(error.value(), "watch a socket for the store");
  }
  return acceptor;
}

// The cause of the error is the errno value of bind or listen. Two sockets with SO_REUSEADDR can be
// bound to one port; the second one then fails to listen.
Expected<tcp::acceptor> ListenOn(asio::io_context& io, const tcp::endpoint& endpoint,
                                 bool v6_only) {
  Expected<tcp::acceptor> acceptor = OpenSocket(io, endpoint.protocol());
  if (!acceptor) {
    return acceptor;
  }
  SetOptions(*acceptor);
  if (endpoint.address().is_v6()) {
    SetOption(*acceptor, IPPROTO_IPV6, IPV6_V6ONLY, v6_only ? 1 : 0);
  }
  asio::error_code error;
  acceptor->bind(endpoint, error);
  if (!error) {
    acceptor->listen(std::numeric_limits<int>::max(), error);  // The kernel caps it (listen(2)).
  }
  if (error) {
    return Fail(error.value(), fmt::format("listen on {} port {}", endpoint.address().to_string(),
                                           endpoint.port()));
  }
  return acceptor;
}

bool IsErrno(const Error& error, int errno_value) {
  return error.cause == std::error_code(errno_value, std::generic_category());
}

bool FamilyIsAbsent(const Error& error) {
  return IsErrno(error, EAFNOSUPPORT) || IsErrno(error, EADDRNOTAVAIL);
}

std::uint16_t PortOf(const tcp::acceptor& acceptor) {
  asio::error_code error;
  return acceptor.local_endpoint(error).port();
}

tl::unexpected<Error> Explain(Error error, std::uint16_t port) {
  if (!IsErrno(error, EADDRINUSE) || port == 0) {
    return tl::unexpected<Error>(std::move(error));
  }
  error.message =
      fmt::format("port {} is taken by {}; pass another --master-port, or none for a free one",
                  port, DescribePortOwner(port));
  return tl::unexpected<Error>(std::move(error));
}

Expected<Acceptors> OnlyOne(Expected<tcp::acceptor> acceptor) {
  if (!acceptor) {
    return tl::unexpected<Error>(std::move(acceptor.error()));
  }
  Acceptors acceptors;
  acceptors.push_back(std::move(*acceptor));
  return acceptors;
}

Expected<Acceptors> ListenOnLoopback(asio::io_context& io, std::uint16_t port) {
  Expected<Acceptors> acceptors =
      OnlyOne(ListenOn(io, {asio::ip::address_v4::loopback(), port}, false));
  const bool v4_absent = !acceptors && FamilyIsAbsent(acceptors.error());
  if (!acceptors && !v4_absent) {
    return acceptors;
  }
  const std::uint16_t same_port = v4_absent ? port : PortOf(acceptors->front());
  Expected<tcp::acceptor> v6 = ListenOn(io, {asio::ip::address_v6::loopback(), same_port}, true);
  if (!v6 && (v4_absent || !FamilyIsAbsent(v6.error()))) {
    return tl::unexpected<Error>(std::move(v6.error()));
  }
  if (v4_absent) {
    return OnlyOne(std::move(v6));
  }
  if (v6) {
    acceptors->push_back(std::move(*v6));
  }
  return acceptors;
}

Expected<Acceptors> ListenOnWildcard(asio::io_context& io, std::uint16_t port) {
  Expected<tcp::acceptor> both = ListenOn(io, {asio::ip::address_v6::any(), port}, false);
  if (both || !FamilyIsAbsent(both.error())) {
    return OnlyOne(std::move(both));
  }
  return OnlyOne(ListenOn(io, {asio::ip::address_v4::any(), port}, false));
}

Expected<Acceptors> ListenOnAddress(asio::io_context& io, const TcpStoreSettings& settings) {
  asio::error_code error;
  const asio::ip::address address = asio::ip::make_address(settings.address, error);
  if (error) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the store cannot listen on '{}': give a numeric IPv4 or IPv6 address "
                            "of this machine, without brackets",
                            settings.address));
  }
  return OnlyOne(ListenOn(io, {address, settings.port}, true));
}

Expected<Acceptors> ListenOnce(asio::io_context& io, const TcpStoreSettings& settings) {
  switch (settings.bind) {
    case StoreBind::kLoopback:
      return ListenOnLoopback(io, settings.port);
    case StoreBind::kWildcard:
      return ListenOnWildcard(io, settings.port);
    case StoreBind::kAddress:
      break;
  }
  return ListenOnAddress(io, settings);
}

}  // namespace

Expected<std::vector<tcp::acceptor>> OpenListeners(asio::io_context& io,
                                                   const TcpStoreSettings& settings) {
  Expected<Acceptors> acceptors = ListenOnce(io, settings);
  for (int i = 1; i < kPortTries && settings.port == 0 && !acceptors; ++i) {
    if (!IsErrno(acceptors.error(), EADDRINUSE)) {
      break;
    }
    acceptors = ListenOnce(io, settings);
  }
  if (!acceptors) {
    return Explain(std::move(acceptors.error()), settings.port);
  }
  return acceptors;
}

std::size_t KernelAcceptQueue() {
  std::size_t connections = 0;
  std::ifstream("/proc/sys/net/core/somaxconn") >> connections;
  return connections;
}

bool SpareDescriptor::Restore() {
  if (fd_ < 0) {
    fd_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  return fd_ >= 0;
}

void SpareDescriptor::Spend() {
  if (fd_ >= 0) {
    ::close(std::exchange(fd_, -1));
  }
}

}  // namespace ddprun
