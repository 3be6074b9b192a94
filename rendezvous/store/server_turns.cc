// The turns of sessions: read, execute, send. See server_core.h.

#include <fmt/format.h>

#include <algorithm>
#include <asio/post.hpp>
#include <memory>
#include <utility>

#include "rendezvous/store/server_core.h"

namespace ddprun {
namespace {

// The bounds of one turn: requests executed, bytes of replies made, bytes read, bytes written.
constexpr int kRequestsPerTurn = 128;
constexpr std::size_t kReplyBytesPerTurn = std::size_t{256} << 10U;
constexpr std::size_t kReadPerTurn = std::size_t{256} << 10U;
constexpr std::size_t kWritePerTurn = std::size_t{512} << 10U;

// A message of which more than this has come is collected in the session's own buffer.
constexpr std::size_t kScratchCarry = std::size_t{16} << 10U;

// A value from this size on keeps the buffer that it was received in.
constexpr std::size_t kAdoptFrom = std::size_t{32} << 10U;

// The total of all buffers is only enforced against sessions that hold more than this.
constexpr std::size_t kFreeBuffer = std::size_t{64} << 10U;

constexpr std::size_t kKeptInput = 256;  // An idle session keeps an input buffer up to this.

}  // namespace

// Send and SendShared are called while the state executes a request: they must not call it back,
// nor drop a session.
void TcpStoreServer::Core::Send(ClientId to, std::string_view bytes) {
  if (Session* const session = Reachable(to)) {
    session->outbox.Append(bytes);
    SendToOther(*session);
  }
}

void TcpStoreServer::Core::SendShared(ClientId to, const Value& value) {
  if (Session* const session = Reachable(to)) {
    session->outbox.Append(value);
    SendToOther(*session);
  }
}

// nullptr for a session that is closed, or about to be.
Session* TcpStoreServer::Core::Reachable(ClientId client) {
  Session* const session = sessions_[static_cast<std::size_t>(client)].get();
  return session == nullptr || session->broken || session->refusal ? nullptr : session;
}

void TcpStoreServer::Core::SendToOther(Session& session) {
  if (&session == current_) {
    return;  // At the end of its turn, in one write.
  }
  Flush(session);
  if (!session.outbox.empty()) {
    CheckLimits(session);
    CountMemory(session);
  }
}

void TcpStoreServer::Core::ArmRead(const SessionPtr& session) {
  session->socket.async_wait(asio::ip::tcp::socket::wait_read,
                             [core = shared_from_this(), session](asio::error_code) {
                               if (!session->closed) {
                                 core->OnReadable(session);
                               }
                             });
}

void TcpStoreServer::Core::OnReadable(const SessionPtr& session) {
  const std::optional<std::string_view> bytes = session->input.size() <= kScratchCarry
                                                    ? ReceiveIntoScratch(*session)
                                                    : ReceiveIntoInput(*session);
  if (!bytes) {
    Mark(*session);
    DropMarked();
    return;
  }
  TakeTurn(session, *bytes);
}

// Puts the unfinished bytes in front of the new ones. The usual turn has none, and copies nothing.
std::optional<std::string_view> TcpStoreServer::Core::ReceiveIntoScratch(Session& session) {
  const std::string_view carried = session.input.view();
  std::copy(carried.begin(), carried.end(), scratch_.begin());
  const std::optional<std::size_t> received =
      ReceiveSome(session, std::span<char>(scratch_).subspan(carried.size()));
  if (!received) {
    return std::nullopt;
  }
  const std::size_t total = carried.size() + *received;
  session.input.Consume(carried.size());
  return std::string_view(scratch_.data(), total);
}

// Never makes room for more than has already come, and reads no further than the message goes, so
// that its buffer can be kept as the value.
std::optional<std::string_view> TcpStoreServer::Core::ReceiveIntoInput(Session& session) {
  const std::size_t wanted =
      std::min({session.parser.missing(), kReadPerTurn, session.input.size()});
  const std::span<char> space = session.input.Prepare(wanted);
  const std::optional<std::size_t> received =
      ReceiveSome(session, space.first(std::min(space.size(), wanted)));
  if (!received) {
    return std::nullopt;
  }
  session.input.Commit(*received);
  return session.input.view();
}

void TcpStoreServer::Core::Continue(const SessionPtr& session) {
  TakeTurn(session, session->input.view());
}

// `bytes` lies in the scratch buffer, or is the whole of the session's input.
void TcpStoreServer::Core::TakeTurn(const SessionPtr& session, std::string_view bytes) {
  current_ = session.get();
  const bool lend = session->outbox.empty();
  if (lend) {
    std::swap(session->outbox, reply_);
  }
  const bool in_input = !session->input.empty();
  const bool more_to_do = ExecuteRequests(*session, bytes, in_input);
  if (!in_input) {
    session->input.Append(bytes);
  }
  Flush(*session);
  if (lend && session->outbox.empty()) {
    std::swap(session->outbox, reply_);
  }
  current_ = nullptr;
  FinishTurn(session, more_to_do);
}

// Takes whole requests off the front of `bytes`. True if more may be there.
bool TcpStoreServer::Core::ExecuteRequests(Session& session, std::string_view& bytes,
                                           bool in_input) {
  const std::size_t enough = session.outbox.size() + kReplyBytesPerTurn;
  for (int i = 0; i < kRequestsPerTurn; ++i) {
    const ParseResult parsed = session.parser.Next(bytes);
    if (parsed == ParseResult::kNeedMore) {
      return false;
    }
    if (parsed == ParseResult::kRefused) {
      session.refusal = session.parser.refusal();
      return false;
    }
    Request& request = session.parser.request();
    const bool adopted = in_input && AdoptValue(session, bytes);
    session.refusal = state_.Execute(session.id, request, *this);
    request.owner.reset();
    if (in_input) {
      session.input.Consume(adopted ? 0 : request.size);
      bytes = session.input.view();
    } else {
      bytes.remove_prefix(request.size);
    }
    if (session.refusal || session.outbox.size() > enough) {
      return !session.refusal;
    }
  }
  return true;
}

// Turns the buffer of a large message that ends with its value into that value, so that no copy is
// made; what followed the message becomes the input.
bool TcpStoreServer::Core::AdoptValue(Session& session, std::string_view bytes) {
  Request& request = session.parser.request();
  if (request.value.size() < kAdoptFrom || request.value.size() * 2 < request.size ||
      request.operation == Operation::kCompareSet) {
    return false;
  }
  const auto key_begin = static_cast<std::size_t>(request.key.data() - bytes.data());
  auto owner = std::make_shared<ByteBuffer>(std::move(session.input));
  session.input = ByteBuffer();
  session.input.Append(bytes.substr(request.size));
  owner->Truncate(request.size);
  owner->ShrinkToFit();
  request.key = owner->view().substr(key_begin, request.key.size());
  request.value = owner->view().substr(request.size - request.value.size());
  request.owner = std::move(owner);
  return true;
}

void TcpStoreServer::Core::FinishTurn(const SessionPtr& session, bool more_to_do) {
  CheckLimits(*session);
  if (session->input.empty() && session->input.capacity() > kKeptInput) {
    session->input = ByteBuffer();
  }
  CountMemory(*session);
  if (session->refusal || session->broken) {
    Mark(*session);
  } else if (more_to_do && !session->input.empty()) {
    asio::post(io_, [core = shared_from_this(), session]() {
      if (!session->closed) {
        core->Continue(session);
      }
    });
  } else {
    ArmRead(session);
  }
  DropMarked();
}

// Sends what can be sent now; a direct attempt first, a wait for room only if that was not enough.
void TcpStoreServer::Core::Flush(Session& session) {
  if (session.write_armed || session.outbox.empty()) {
    return;
  }
  switch (SendOutbox(session, kWritePerTurn)) {
    case IoResult::kDone:
      return;
    case IoResult::kBroken:
      session.broken = true;
      Mark(session);
      return;
    case IoResult::kBlocked:
      ArmWrite(session);
  }
}

void TcpStoreServer::Core::ArmWrite(Session& session) {
  session.write_armed = true;
  const SessionPtr& owner = sessions_[static_cast<std::size_t>(session.id)];
  session.socket.async_wait(asio::ip::tcp::socket::wait_write,
                            [core = shared_from_this(), owner](asio::error_code) {
                              if (!owner->closed) {
                                owner->write_armed = false;
                                core->Flush(*owner);
                                core->CheckLimits(*owner);
                                core->CountMemory(*owner);
                                core->DropMarked();
                              }
                            });
}

void TcpStoreServer::Core::CheckLimits(Session& session) {
  if (session.refusal || session.broken) {
    return;
  }
  const std::size_t held = session.input.capacity() + session.outbox.owned_bytes();
  const std::size_t total = buffered_bytes_ - session.counted_memory + held;
  if (session.outbox.size() > settings_.max_backlog) {
    session.refusal = fmt::format("{} bytes of replies are unread, the limit is {}",
                                  session.outbox.size(), settings_.max_backlog);
  } else if (held > kFreeBuffer && total + state_.stored_bytes() > settings_.max_store) {
    session.refusal =
        fmt::format("the store is full: {} bytes are stored and {} under way, the limit is {}",
                    state_.stored_bytes(), total, settings_.max_store);
  }
  if (session.refusal) {
    Mark(session);
  }
}

void TcpStoreServer::Core::CountMemory(Session& session) {
  const std::size_t held = session.input.capacity() + session.outbox.owned_bytes();
  buffered_bytes_ += held;
  buffered_bytes_ -= std::exchange(session.counted_memory, held);
}

}  // namespace ddprun
