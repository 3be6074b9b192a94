// Where a TcpStoreServer listens, and what its sockets are. Conformance numbers are those of
// docs/protocol.md.

#include <fcntl.h>

#include <set>

#include "tests/unit/store/server_harness.h"

namespace ddprun {
namespace {

using wire::I64;
using wire::List;
using wire::Message;
using wire::Str;

std::string SetC(const std::string& key, const std::string& value) {
  return Message(wire::kC.set, Str(key) + Str(value));
}

TEST_CASE("loopback is both families on one port (conformance 48)") {
  ServerHarness server;
  for (const char* address : {"127.0.0.1", "::1", "::ffff:127.0.0.1"}) {
    CAPTURE(address);
    RawClient client(server.port(), address);
    REQUIRE(client.connected());
    client.Send(wire::kHelloC + wire::kPing);
    CHECK(client.Receive(4) == wire::kPong);
  }
}

TEST_CASE("the wildcard is reached by all forms, one address by its own (conformance 48)") {
  TcpStoreSettings settings;
  settings.bind = StoreBind::kWildcard;
  {
    ServerHarness server(settings);
    for (const char* address : {"127.0.0.1", "::1", "::ffff:127.0.0.1", "127.0.0.2"}) {
      CAPTURE(address);
      CHECK(RawClient(server.port(), address).connected());
    }
  }
  settings.bind = StoreBind::kAddress;
  settings.address = "127.0.0.2";
  ServerHarness server(settings);
  CHECK(RawClient(server.port(), "127.0.0.2").connected());
  CHECK_FALSE(RawClient(server.port(), "127.0.0.1").connected());
}

TEST_CASE("an address that is a name, or not ours, is an error") {
  asio::io_context io;
  TcpStoreSettings settings;
  settings.bind = StoreBind::kAddress;
  settings.address = "localhost";
  auto server = TcpStoreServer::Listen(io, settings, nullptr);
  REQUIRE_FALSE(server.has_value());
  CHECK(server.error().message ==
        "the store cannot listen on 'localhost': give a numeric IPv4 or IPv6 address of this "
        "machine, without brackets");
  settings.address = "192.0.2.1";
  server = TcpStoreServer::Listen(io, settings, nullptr);
  REQUIRE_FALSE(server.has_value());
  CHECK(server.error().message == "listen on 192.0.2.1 port 0: cannot assign requested address");
}

TEST_CASE("a port that is taken names its holder") {
  ServerHarness holder;
  asio::io_context io;
  TcpStoreSettings settings;
  settings.port = holder.port();
  settings.bind = GENERATE(StoreBind::kLoopback, StoreBind::kWildcard);
  const auto server = TcpStoreServer::Listen(io, settings, nullptr);
  REQUIRE_FALSE(server.has_value());
  const std::string& message = server.error().message;
  CHECK(message.find("port " + std::to_string(holder.port()) + " is taken by pid " +
                     std::to_string(::getpid()) + " (") == 0);
  CHECK(message.find("unit_store") != std::string::npos);
  CHECK(message.find("pass another --master-port, or none for a free one") != std::string::npos);
  CHECK(server.error().code == ErrorCode::kAlreadyExists);
}

TEST_CASE("a port on one family only taken is taken for loopback") {
  TcpStoreSettings settings;
  settings.bind = StoreBind::kAddress;
  settings.address = "::1";
  ServerHarness holder(settings);
  asio::io_context io;
  TcpStoreSettings loopback;
  loopback.port = holder.port();
  CHECK_FALSE(TcpStoreServer::Listen(io, loopback, nullptr).has_value());
}

TEST_CASE("stopping frees the port and every connection at once") {
  std::uint16_t port = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    TcpStoreSettings settings;
    settings.port = port;
    ServerHarness server(settings);
    port = server.port();
    RawClient client = server.Join();
    client.Send(Message(wire::kC.num_keys));
    REQUIRE(client.Receive(8) == I64(0));  // Every attempt finds an empty store.
    client.Send(SetC("/k", "v") + Message(wire::kC.wait, List({"/never"})));
    server.Run([]() {});
  }
  asio::io_context io;
  TcpStoreSettings settings;
  auto server = TcpStoreServer::Listen(io, settings, nullptr);
  REQUIRE(server.has_value());
  RawClient client((*server)->port());
  io.poll();
  (*server)->Stop();
  (*server)->Stop();
  CHECK(client.IsClosed());
  CHECK((*server)->connections() == 0);
  CHECK_FALSE(RawClient((*server)->port()).connected());
}

// The descriptor of this process whose peer has that port; -1 if there is none.
int AcceptedSocket(std::uint16_t peer_port) {
  for (int fd = 3; fd < 4096; ++fd) {
    sockaddr_in6 peer{};
    socklen_t size = sizeof(peer);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        ntohs(peer.sin6_port) == peer_port) {
      return fd;
    }
  }
  return -1;
}

int Option(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof(value);
  ::getsockopt(fd, level, name, &value, &size);
  return value;
}

TEST_CASE("accepted sockets are closed on exec, without delay and kept alive") {
  ServerHarness server;
  const RawClient client = server.Join();
  const int fd = AcceptedSocket(client.local_port());
  REQUIRE(fd >= 0);
  CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  CHECK((::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
  CHECK(Option(fd, IPPROTO_TCP, TCP_NODELAY) == 1);
  CHECK(Option(fd, SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(Option(fd, IPPROTO_TCP, TCP_KEEPIDLE) == 60);
  CHECK(Option(fd, IPPROTO_TCP, TCP_KEEPINTVL) == 10);
  CHECK(Option(fd, IPPROTO_TCP, TCP_KEEPCNT) == 6);
}

std::set<int> InheritableDescriptors() {
  std::set<int> found;
  for (int fd = 0; fd < 4096; ++fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) {
      found.insert(fd);
    }
  }
  return found;
}

TEST_CASE("no descriptor of the server survives an exec") {
  const std::set<int> before = InheritableDescriptors();
  ServerHarness server;
  const RawClient client = server.Join();
  CHECK(InheritableDescriptors() == before);
}

TEST_CASE("a short accept queue is warned about") {
  TcpStoreSettings settings;
  settings.expected_connections = std::size_t{1} << 31U;
  ServerHarness server(settings);
  CHECK(server.Logged("net.core.somaxconn"));
}

}  // namespace
}  // namespace ddprun
