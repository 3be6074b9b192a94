#pragma once

// A StoreState with its parsers and without sockets: each client sends raw bytes and receives raw
// bytes.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/store/request_parser.h"
#include "rendezvous/store/store_state.h"
#include "tests/support/store_client/wire.h"

namespace ddprun {

class StoreHarness final : private ReplySink {
 public:
  explicit StoreHarness(StoreLimits limits = {}) : state_(limits) {}

  // A new client of dialect C (says hello) or A (says nothing).
  ClientId NewClient(bool dialect_c = true) {
    const auto id = static_cast<ClientId>(parsers_.size());
    parsers_.push_back(std::make_unique<RequestParser>(ParserSettings()));
    received_.emplace_back();
    refusals_.emplace_back();
    state_.Connect(id);
    if (dialect_c) {
      Send(id, wire::kHelloC);
    }
    return id;
  }

  // Executes all whole requests in `bytes`, which must end with one; returns what this client
  // receives meanwhile. A refused client is disconnected; see refusal().
  std::string Send(ClientId client, const std::string& bytes) {
    const std::size_t index = static_cast<std::size_t>(client);
    std::string_view rest = bytes;
    while (!rest.empty() && !refusals_[index]) {
      const ParseResult result = parsers_[index]->Next(rest);
      if (result == ParseResult::kRequest) {
        const Request& request = parsers_[index]->request();
        refusals_[index] = state_.Execute(client, request, *this);
        rest.remove_prefix(request.size);
      } else {
        refusals_[index] =
            result == ParseResult::kRefused ? parsers_[index]->refusal() : "message cut short";
      }
      if (refusals_[index]) {
        Leave(client);
      }
    }
    return Take(client);
  }

  void Leave(ClientId client) { state_.Disconnect(client, *this); }

  // What the client has received and not taken yet.
  std::string Take(ClientId client) {
    return std::exchange(received_[static_cast<std::size_t>(client)], {});
  }

  std::string refusal(ClientId client) const {
    return refusals_[static_cast<std::size_t>(client)].value_or("");
  }
  const StoreState& state() const { return state_; }

 private:
  void Send(ClientId to, std::string_view bytes) override {
    received_[static_cast<std::size_t>(to)] += bytes;
  }
  void SendShared(ClientId to, const Value& value) override {
    received_[static_cast<std::size_t>(to)] += value.view();
  }

  StoreState state_;
  std::vector<std::unique_ptr<RequestParser>> parsers_;
  std::vector<std::string> received_;
  std::vector<Refusal> refusals_;
};

}  // namespace ddprun
