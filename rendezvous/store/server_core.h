#pragma once

// TcpStoreServer::Core: the Asio edge of the store. Accepts, reads, feeds the parser and the state,
// sends. Internal to tcp_store_server.cc.
//
// A session is idle in a wait for readability. When that fires it gets one turn: one read, a
// bounded number of requests, one write. What is left over is continued through the queue of the
// io_context, so that no client keeps others waiting. An idle session holds no buffers: turns
// borrow the server's.

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/base/clock.h"
#include "rendezvous/store/listener.h"
#include "rendezvous/store/refusal_log.h"
#include "rendezvous/store/session.h"
#include "rendezvous/store/store_state.h"
#include "rendezvous/store/tcp_store_server.h"

namespace ddprun {

class TcpStoreServer::Core final : public std::enable_shared_from_this<Core>, private ReplySink {
 public:
  Core(asio::io_context& io, TcpStoreSettings settings, std::function<void(std::string)> log_line);

  Expected<void> Listen();
  void Stop();

  std::uint16_t port() const { return port_; }
  std::size_t connections() const { return connections_; }
  const StoreState& state() const { return state_; }

 private:
  // Room for a turn's read behind the unfinished bytes of the last one.
  static constexpr std::size_t kScratchSize = std::size_t{80} << 10U;

  struct Listener {
    asio::ip::tcp::acceptor acceptor;
    bool armed = false;  // A wait for connections is pending.
  };
  using SessionPtr = std::shared_ptr<Session>;

  void Send(ClientId to, std::string_view bytes) override;
  void SendShared(ClientId to, const Value& value) override;
  Session* Reachable(ClientId client);
  void SendToOther(Session& session);

  void ArmAccept(std::size_t listener);
  void Accept(std::size_t listener);
  bool AcceptOne(std::size_t listener);
  bool OnAcceptError(std::size_t listener, int errno_value);
  void Register(asio::ip::tcp::socket socket, const asio::ip::tcp::endpoint& peer);
  ClientId NewId();
  void PauseAccepting();
  void WaitForDescriptor(Duration delay);
  void ResumeAccepting();

  void ArmRead(const SessionPtr& session);
  void OnReadable(const SessionPtr& session);
  void Continue(const SessionPtr& session);
  std::optional<std::string_view> ReceiveIntoScratch(Session& session);
  std::optional<std::string_view> ReceiveIntoInput(Session& session);
  void TakeTurn(const SessionPtr& session, std::string_view bytes);
  bool ExecuteRequests(Session& session, std::string_view& bytes, bool in_input);
  bool AdoptValue(Session& session, std::string_view bytes);
  void FinishTurn(const SessionPtr& session, bool more_to_do);

  void Flush(Session& session);
  void ArmWrite(Session& session);
  void CheckLimits(Session& session);
  void CountMemory(Session& session);
  void DropMarked();
  void Drop(Session& session);
  void Mark(Session& session);
  void LogLine(std::string line);

  asio::io_context& io_;
  TcpStoreSettings settings_;
  std::function<void(std::string)> log_line_;
  RefusalLog log_filter_;
  StoreState state_;

  std::vector<Listener> listeners_;
  std::uint16_t port_ = 0;
  SpareDescriptor spare_;
  asio::steady_timer retry_accept_;
  bool accept_paused_ = false;
  bool stopped_ = false;

  std::vector<SessionPtr> sessions_;  // By client id.
  std::vector<ClientId> free_ids_;
  std::size_t connections_ = 0;
  std::size_t buffered_bytes_ = 0;  // In the inputs and outboxes of all sessions.

  Session* current_ = nullptr;    // Whose turn it is: its replies are sent at the end of it.
  std::vector<ClientId> marked_;  // To be dropped at the end of the turn.
  std::vector<char> scratch_;     // What is received in a turn, with what was left of the last one.
  Outbox reply_;                  // Lends its memory to the session whose turn it is.
};

}  // namespace ddprun
