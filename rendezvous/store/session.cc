#include "rendezvous/store/session.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace ddprun {
namespace {

bool IsTransient(int errno_value) {
  return errno_value == EAGAIN || errno_value == EWOULDBLOCK || errno_value == EINTR;
}

ssize_t Write(Session& session, std::span<const std::string_view> pieces) {
  if (pieces.size() == 1) {  // The usual case, and the cheaper call.
    return ::send(session.socket.native_handle(), pieces[0].data(), pieces[0].size(),
                  MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  std::array<iovec, Outbox::kMaxPieces> vectors;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    // sendmsg(2) only reads through this pointer.
    vectors[i] = {const_cast<char*>(pieces[i].data()), pieces[i].size()};
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = pieces.size();
  return ::sendmsg(session.socket.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::size_t Total(std::span<const std::string_view> pieces) {
  std::size_t total = 0;
  for (const std::string_view piece : pieces) {
    total += piece.size();
  }
  return total;
}

}  // namespace

IoResult SendOutbox(Session& session, std::size_t max_bytes) {
  std::array<std::string_view, Outbox::kMaxPieces> space;
  while (!session.outbox.empty() && max_bytes > 0) {
    const std::span<const std::string_view> pieces = session.outbox.Gather(max_bytes, space);
    const std::size_t offered = Total(pieces);
    const ssize_t sent = Write(session, pieces);
    if (sent < 0) {
      return IsTransient(errno) ? IoResult::kBlocked : IoResult::kBroken;
    }
    const auto count = static_cast<std::size_t>(sent);
    session.outbox.Consume(count);
    max_bytes -= count;
    if (count < offered) {
      return IoResult::kBlocked;
    }
  }
  return session.outbox.empty() ? IoResult::kDone : IoResult::kBlocked;
}

std::optional<std::size_t> ReceiveSome(Session& session, std::span<char> space) {
  const ssize_t received =
      ::recv(session.socket.native_handle(), space.data(), space.size(), MSG_DONTWAIT);
  if (received > 0) {
    return static_cast<std::size_t>(received);
  }
  return received < 0 && IsTransient(errno) ? std::optional<std::size_t>(0) : std::nullopt;
}

std::string DescribeRefusal(const Session& session, std::string_view reason) {
  const std::optional<std::uint8_t> opcode = session.parser.opcode();
  return fmt::format("store: refused {} port {} (dialect {}, opcode {}): {}",
                     session.peer.address().to_string(), session.peer.port(),
                     DialectName(session.parser.dialect()),
                     opcode ? fmt::format("0x{:02x}", *opcode) : "none", reason);
}

}  // namespace ddprun
