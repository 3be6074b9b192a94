#include "agent/round_store.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <asio/io_context.hpp>

#include "agent/process/unique_fd.h"
#include "tests/support/catch.h"

namespace ddprun {
namespace {

// What the rank-0 worker does with MASTER_PORT: binds it with SO_REUSEADDR and listens.
bool CanServe(std::uint16_t port, bool reuse_address) {
  const UniqueFd server(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = reuse_address ? 1 : 0;
  ::setsockopt(server.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  return ::bind(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
         ::listen(server.get(), 1) == 0;
}

bool CanConnect(std::uint16_t port) {
  const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

TEST_CASE("every round has a store that listens, and the one before is gone") {
  asio::io_context io;
  RoundStoreSettings settings;
  settings.advertised_address = "127.0.0.1";
  RoundStoreHost host(io, settings);
  const auto first = host.Open();
  REQUIRE(first.has_value());
  CHECK(first->address == "127.0.0.1");
  CHECK(CanConnect(first->port));
  const auto second = host.Open();
  REQUIRE(second.has_value());
  CHECK(CanConnect(second->port));
  CHECK((first->port == second->port || !CanConnect(first->port)));
  host.Close();
  CHECK_FALSE(CanConnect(second->port));
}

TEST_CASE("a given port is used again in the next round, and a taken one is an error") {
  asio::io_context io;
  RoundStoreHost any(io, {});
  const auto taken = any.Open();
  REQUIRE(taken.has_value());
  RoundStoreSettings settings;
  settings.server.port = taken->port;
  RoundStoreHost host(io, settings);
  const auto refused = host.Open();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find(std::to_string(taken->port)) != std::string::npos);
  any.Close();
  CHECK(host.Open()->port == settings.server.port);
  CHECK(host.Open()->port == settings.server.port);
}

TEST_CASE("a reserved port is nobody's but the worker's") {
  asio::io_context io;
  RoundStoreSettings settings;
  settings.serve = false;
  RoundStoreHost host(io, settings);
  const auto reserved = host.Open();
  REQUIRE(reserved.has_value());
  CHECK_FALSE(CanConnect(reserved->port));
  CHECK_FALSE(CanServe(reserved->port, false));
  CHECK(CanServe(reserved->port, true));
}

}  // namespace
}  // namespace ddprun
