#include "rendezvous/store/server_core.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <asio/post.hpp>
#include <cerrno>
#include <utility>

namespace ddprun {
namespace {

// Accepted in one go before others get their turn.
constexpr int kAcceptsPerTurn = 64;

// How soon to look for a free descriptor when none of our own connections ends.
constexpr auto kAcceptRetry = std::chrono::milliseconds(100);

ParserSettings ParserSettingsOf(const TcpStoreSettings& settings) {
  return ParserSettings{settings.mode, settings.legacy_is_2_1, settings.parse};
}

}  // namespace

TcpStoreServer::Core::Core(asio::io_context& io, TcpStoreSettings settings,
                           std::function<void(std::string)> log_line)
    : io_(io),
      settings_(std::move(settings)),
      log_line_(std::move(log_line)),
      state_(StoreLimits{settings_.max_store, settings_.max_backlog}),
      retry_accept_(io),
      scratch_(kScratchSize) {}

void TcpStoreServer::Core::Stop() {
  stopped_ = true;
  listeners_.clear();
  retry_accept_.cancel();
  spare_.Spend();
  for (const SessionPtr& session : sessions_) {
    if (session) {
      session->closed = true;
      asio::error_code ignored;
      session->socket.close(ignored);
    }
  }
  sessions_.clear();
  connections_ = 0;
}

Expected<void> TcpStoreServer::Core::Listen() {
  Expected<std::vector<asio::ip::tcp::acceptor>> listeners = OpenListeners(io_, settings_);
  if (!listeners) {
    return tl::unexpected<Error>(std::move(listeners.error()));
  }
  for (asio::ip::tcp::acceptor& acceptor : *listeners) {
    listeners_.push_back(Listener{std::move(acceptor)});
  }
  asio::error_code error;
  port_ = listeners_.front().acceptor.local_endpoint(error).port();
  if (error) {
    return Fail(error.value(), "read the store's port");
  }
  const std::size_t queue = KernelAcceptQueue();
  if (queue > 0 && queue < settings_.expected_connections) {
    LogLine(
        fmt::format("store: {} connections are expected, but the kernel queues only {} "
                    "(net.core.somaxconn); raise it if clients are slow to connect",
                    settings_.expected_connections, queue));
  }
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    ArmAccept(i);
  }
  return {};
}

void TcpStoreServer::Core::ArmAccept(std::size_t listener) {
  if (std::exchange(listeners_[listener].armed, true)) {
    return;
  }
  listeners_[listener].acceptor.async_wait(asio::ip::tcp::acceptor::wait_read,
                                           [core = shared_from_this(), listener](asio::error_code) {
                                             if (core->stopped_) {
                                               return;
                                             }
                                             core->listeners_[listener].armed = false;
                                             if (!core->accept_paused_) {
                                               core->Accept(listener);
                                             }
                                           });
}

void TcpStoreServer::Core::Accept(std::size_t listener) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (!AcceptOne(listener)) {
      break;
    }
  }
  if (!accept_paused_) {
    ArmAccept(listener);  // Fires again at once while connections are waiting.
  }
}

// False: nothing is waiting, or nothing can be accepted now.
bool TcpStoreServer::Core::AcceptOne(std::size_t listener) {
  asio::ip::tcp::endpoint peer;
  auto size = static_cast<socklen_t>(peer.capacity());
  const int fd = ::accept4(listeners_[listener].acceptor.native_handle(), peer.data(), &size,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    return OnAcceptError(listener, errno);
  }
  peer.resize(size);
  asio::ip::tcp::socket socket(io_);
  asio::error_code error;
  socket.assign(peer.protocol(), fd, error);
  if (error) {
    ::close(fd);
    return true;
  }
  Register(std::move(socket), peer);
  return true;
}

// Errors of the connection itself are passed over (accept(2)). Without a descriptor the spare one
// is spent on the client that is next, and accepting stops until there is a spare one again.
bool TcpStoreServer::Core::OnAcceptError(std::size_t listener, int errno_value) {
  switch (errno_value) {
    case EAGAIN:
      return false;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      break;
    default:
      return true;
  }
  if (accept_paused_) {
    return false;
  }
  PauseAccepting();
  spare_.Spend();
  AcceptOne(listener);
  LogLine(fmt::format("store: cannot accept more than {} connections now: {}; the others wait",
                      connections_, ErrnoText(errno_value)));
  return false;
}

void TcpStoreServer::Core::PauseAccepting() {
  accept_paused_ = true;
  WaitForDescriptor(kAcceptRetry);
}

// Asked for again (a connection of ours has ended), it ends the wait that is pending.
void TcpStoreServer::Core::WaitForDescriptor(Duration delay) {
  retry_accept_.expires_after(delay);
  retry_accept_.async_wait([core = shared_from_this()](asio::error_code error) {
    if (!error && !core->stopped_) {
      core->ResumeAccepting();
    }
  });
}

void TcpStoreServer::Core::ResumeAccepting() {
  if (!spare_.Restore()) {
    PauseAccepting();
    return;
  }
  accept_paused_ = false;
  for (std::size_t i = 0; i < listeners_.size() && !accept_paused_; ++i) {
    Accept(i);
  }
}

void TcpStoreServer::Core::Register(asio::ip::tcp::socket socket,
                                    const asio::ip::tcp::endpoint& peer) {
  const ClientId id = NewId();
  auto session = std::make_shared<Session>(std::move(socket), id, ParserSettingsOf(settings_));
  session->peer = peer;
  sessions_[static_cast<std::size_t>(id)] = session;
  ++connections_;
  state_.Connect(id);
  ArmRead(session);
}

ClientId TcpStoreServer::Core::NewId() {
  if (!free_ids_.empty()) {
    const ClientId id = free_ids_.back();
    free_ids_.pop_back();
    return id;
  }
  sessions_.emplace_back();
  return static_cast<ClientId>(sessions_.size() - 1);
}

// Sessions are dropped between turns only: the state may be in the middle of a request. Dropping
// one may send to others, and so mark more.
void TcpStoreServer::Core::Mark(Session& session) {
  marked_.push_back(session.id);
}

void TcpStoreServer::Core::DropMarked() {
  while (!marked_.empty()) {
    const ClientId id = marked_.back();
    marked_.pop_back();
    if (const SessionPtr session = sessions_[static_cast<std::size_t>(id)]) {
      Drop(*session);
    }
  }
}

void TcpStoreServer::Core::Drop(Session& session) {
  if (session.refusal) {
    LogLine(DescribeRefusal(session, *session.refusal));
  }
  session.closed = true;
  asio::error_code ignored;
  session.socket.close(ignored);
  buffered_bytes_ -= session.counted_memory;
  sessions_[static_cast<std::size_t>(session.id)].reset();
  free_ids_.push_back(session.id);
  --connections_;
  state_.Disconnect(session.id, *this);
  if (accept_paused_) {
    WaitForDescriptor(Duration::zero());
  }
}

void TcpStoreServer::Core::LogLine(std::string line) {
  if (std::optional<std::string> kept = log_filter_.Filter(std::move(line), MonotonicNow())) {
    log_line_(std::move(*kept));
  }
}

}  // namespace ddprun
