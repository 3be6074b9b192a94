#pragma once

// Where StoreState puts its effects on connections: bytes for a client, in order. The server sends
// them; tests collect them. Pure.

#include <cstdint>
#include <string_view>

#include "rendezvous/store/value.h"

namespace ddprun {

// One connection of the server: a small number that is used again after a disconnect.
enum class ClientId : std::uint32_t {};

class ReplySink {
 public:
  // Bytes to send to `to`; copied or sent before the call returns. Must not call into StoreState.
  virtual void Send(ClientId to, std::string_view bytes) = 0;

  // The bytes of a shared value, to be kept by reference until they are sent.
  virtual void SendShared(ClientId to, const Value& value) = 0;

 protected:
  ReplySink() = default;
  ReplySink(const ReplySink&) = default;
  ReplySink& operator=(const ReplySink&) = default;
  ~ReplySink() = default;
};

}  // namespace ddprun
