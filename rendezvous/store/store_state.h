#pragma once

// StoreState: what a TCPStore knows and does, without sockets, time or threads. Pure: requests go
// in, bytes for clients come out through a ReplySink. The semantics are torch's (1.9 to 2.15), with
// the improvements that docs/protocol.md lists.
//
// Keys and queues are separate namespaces, held in one table so that a request costs one look-up.
// A client has at most one pending WAIT or BARRIER. Any request but CANCEL_WAIT drops it silently:
// no client sends anything after a WAIT before it has its answer or has given up.
//
// Queues: a push releases a waiter and grants it the item. While the grant lasts (until that client
// sends anything or is gone) the item wakes nobody else, and when it ends without a pop the next
// waiter is released, so that a waiter which dies does not leave the item to sleepers.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rendezvous/store/protocol.h"
#include "rendezvous/store/reply_sink.h"
#include "rendezvous/store/value.h"

namespace ddprun {

struct StoreLimits {
  std::size_t max_store = std::size_t{4} << 30U;    // Bytes of keys, values, items and waits.
  std::size_t max_reply = std::size_t{256} << 20U;  // Bytes of one reply.
};

// Why a client must be disconnected; nullopt if all is well. A clause without subject: "ADD on a
// value that is no number".
using Refusal = std::optional<std::string>;

class StoreState {
 public:
  explicit StoreState(StoreLimits limits);
  StoreState(const StoreState&) = delete;
  StoreState& operator=(const StoreState&) = delete;
  ~StoreState();

  void Connect(ClientId client);

  // Forgets the client's wait, grant and watches, and nothing else: keys outlive their writers.
  void Disconnect(ClientId client, ReplySink& sink);

  // Executes one whole request. After a refusal the caller disconnects the client.
  [[nodiscard]] Refusal Execute(ClientId client, const Request& request, ReplySink& sink);

  std::size_t num_keys() const { return num_keys_; }

  // What counts against max_store, with the cost of the table itself.
  std::size_t stored_bytes() const { return stored_bytes_; }

  // How many client objects have said that they joined: the value of the key "init/".
  std::int64_t joined_clients() const;

 private:
  // A value on its way in: bytes to copy, or to keep with their owner if it is set.
  struct NewValue {
    std::string_view bytes;
    const std::shared_ptr<ByteBuffer>& owner;

    explicit NewValue(const Request& request) : bytes(request.value), owner(request.owner) {}
    explicit NewValue(std::string_view copied) : bytes(copied), owner(kNoOwner) {}
    void AssignTo(Value& value) const;
    static const std::shared_ptr<ByteBuffer> kNoOwner;
  };
  struct Waiter {
    ClientId client;
    std::size_t link = 0;  // Index in the client's missing list.
  };
  // What few keys have.
  struct Extras {
    std::list<Waiter> waiters;  // In order of arrival.
    std::list<Value> queue;
    std::size_t grants = 0;  // Clients released by a push that have not answered yet.
    std::vector<ClientId> watchers;
  };
  struct Entry {
    bool has_value = false;
    Value value;
    std::unique_ptr<Extras> extras;
  };
  struct KeyHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const {
      return std::hash<std::string_view>()(key);
    }
  };
  using Table = std::unordered_map<std::string, Entry, KeyHash, std::equal_to<>>;
  using Node = Table::value_type;  // Its address is stable.

  // A key that a client still waits for, and its place in that key's list.
  struct Link {
    Node* node;
    std::list<Waiter>::iterator position;
  };
  struct Client {
    std::vector<Link> missing;  // Not empty while a wait is pending.
    bool in_barrier = false;    // The pending wait is a BARRIER.
    Node* granted = nullptr;
    std::vector<Node*> watched;
  };

  Refusal Dispatch(ClientId client, const Request& request, ReplySink& sink);
  Refusal Set(std::string_view key, const NewValue& value, ReplySink& sink);
  Refusal CompareSet(ClientId client, const Request& request, ReplySink& sink);
  Refusal Add(ClientId client, const Request& request, ReplySink& sink);
  Refusal Wait(ClientId client, const Request& request, ReplySink& sink);
  Refusal Watch(ClientId client, std::string_view key, ReplySink& sink);
  Refusal Append(std::string_view key, std::string_view bytes, ReplySink& sink);
  Refusal MultiGet(ClientId client, const Request& request, ReplySink& sink);
  Refusal MultiSet(const Request& request, ReplySink& sink);
  Refusal Push(const Request& request, ReplySink& sink);
  Refusal ListKeys(ClientId client, ReplySink& sink);
  Refusal Barrier(ClientId client, const Request& request, ReplySink& sink);
  void Get(ClientId client, std::string_view key, ReplySink& sink);
  void Check(ClientId client, const Request& request, ReplySink& sink);
  void Delete(ClientId client, std::string_view key, ReplySink& sink);
  void Pop(ClientId client, std::string_view key, ReplySink& sink);

  static bool Present(const Node* node);  // A value, or a queue that is not empty.
  Client& ClientOf(ClientId client) { return clients_[static_cast<std::size_t>(client)]; }
  Node* Find(std::string_view key);
  static const Value* ValueOf(const Node* node);  // nullptr if the key has none.
  Node* Ensure(std::string_view key);             // nullptr: the store is full.
  Node* EnsureWithRoom(std::string_view key, std::size_t more);
  Extras& ExtrasOf(Node& node);
  void EraseIfUnused(Node& node);
  bool Fits(std::size_t more) const;
  std::string Full() const;

  // Gives a key its value, without waking anybody. `found` is what Find(key) said. nullptr: the
  // store is full.
  Node* Store(std::string_view key, Node* found, const NewValue& value, ReplySink& sink);
  void Notify(const Node& node, char kind, std::string_view before, std::string_view after,
              ReplySink& sink);

  Refusal AddWaiter(ClientId client, Node& node);
  void Wake(Node& node, ReplySink& sink);
  void SeeKey(const Waiter& waiter);
  void FinishWaitIfComplete(ClientId client, ReplySink& sink);
  void DropWait(ClientId client);
  void SeeQueue(Node& node);
  void ReleaseQueueWaiters(Node& node, ReplySink& sink);
  void EndGrant(Node& node, ReplySink& sink);

  StoreLimits limits_;
  Table table_;
  std::vector<Client> clients_;
  std::size_t num_keys_ = 0;   // Entries with a value.
  std::size_t key_bytes_ = 0;  // Of their keys.
  std::size_t stored_bytes_ = 0;
};

}  // namespace ddprun
