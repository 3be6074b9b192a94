#pragma once

// One connection of a TcpStoreServer: its socket and what is unfinished on it. Internal to the
// server, which owns and drives it; the handlers of pending waits share the ownership, and look at
// `closed` before anything else.

#include <asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "rendezvous/store/outbox.h"
#include "rendezvous/store/reply_sink.h"
#include "rendezvous/store/request_parser.h"

namespace ddprun {

struct Session {
  Session(asio::ip::tcp::socket connected, ClientId client, const ParserSettings& settings)
      : socket(std::move(connected)), id(client), parser(settings) {}

  asio::ip::tcp::socket socket;
  asio::ip::tcp::endpoint peer;
  ClientId id;
  RequestParser parser;
  ByteBuffer input;  // Received bytes that are not consumed yet; empty and unallocated when idle.
  Outbox outbox;
  std::size_t counted_memory = 0;  // The share of `input` and `outbox` in the server's total.
  bool write_armed = false;        // A wait for room in the socket is pending.
  bool closed = false;

  // Set while another client's request is executed; acted upon afterwards.
  bool broken = false;
  std::optional<std::string> refusal;
};

enum class IoResult : std::uint8_t { kDone, kBlocked, kBroken };

// Writes what is in the outbox, at most `max_bytes` of it, without blocking and with one system
// call per 64 pieces. kDone: the outbox is empty. kBlocked: the rest waits for room.
IoResult SendOutbox(Session& session, std::size_t max_bytes);

// One non-blocking read into the space given. Returns the bytes read, 0 if there are none now,
// nullopt if the peer has closed or the connection is broken.
std::optional<std::size_t> ReceiveSome(Session& session, std::span<char> space);

// "refused 127.0.0.1 port 4242 (dialect ..., opcode 0x13 ...): reason".
std::string DescribeRefusal(const Session& session, std::string_view reason);

}  // namespace ddprun
