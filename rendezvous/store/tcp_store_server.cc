#include "rendezvous/store/tcp_store_server.h"

#include <algorithm>
#include <utility>

#include "rendezvous/store/server_core.h"

namespace ddprun {

Expected<std::unique_ptr<TcpStoreServer>> TcpStoreServer::Listen(
    asio::io_context& io, TcpStoreSettings settings, std::function<void(std::string)> log_line) {
  auto core = std::make_shared<Core>(io, std::move(settings), std::move(log_line));
  if (Expected<void> listening = core->Listen(); !listening) {
    return tl::unexpected<Error>(std::move(listening.error()));
  }
  return std::unique_ptr<TcpStoreServer>(new TcpStoreServer(std::move(core)));
}

TcpStoreServer::TcpStoreServer(std::shared_ptr<Core> core) : core_(std::move(core)) {}

TcpStoreServer::~TcpStoreServer() {
  Stop();
}

std::uint16_t TcpStoreServer::port() const {
  return core_->port();
}

void TcpStoreServer::Stop() {
  core_->Stop();
}

std::size_t TcpStoreServer::connections() const {
  return core_->connections();
}

std::size_t TcpStoreServer::joined_clients() const {
  return static_cast<std::size_t>(std::max<std::int64_t>(0, core_->state().joined_clients()));
}

std::size_t TcpStoreServer::num_keys() const {
  return core_->state().num_keys();
}

}  // namespace ddprun
