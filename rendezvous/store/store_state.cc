#include "rendezvous/store/store_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "rendezvous/base/check.h"

namespace ddprun {
namespace {

// What one thing costs besides its own bytes, so that tiny ones cannot fill the memory uncounted.
constexpr std::size_t kItemCost = 96;
constexpr std::size_t kWatchCost = 16;

constexpr std::string_view kJoinKey = "init/";  // The client's own counter, without a leading '/'.

void SendByte(ClientId to, char byte, ReplySink& sink) {
  sink.Send(to, std::string_view(&byte, 1));
}

void SendNumber(ClientId to, std::int64_t number, ReplySink& sink) {
  sink.Send(to, AsView(EncodeI64(number)));
}

void SendBytes(ClientId to, std::string_view bytes, ReplySink& sink) {
  sink.Send(to, AsView(EncodeU64(bytes.size())));
  if (!bytes.empty()) {
    sink.Send(to, bytes);
  }
}

void SendValue(ClientId to, const Value& value, ReplySink& sink) {
  if (!value.shared()) {
    SendBytes(to, value.view(), sink);
    return;
  }
  sink.Send(to, AsView(EncodeU64(value.size())));
  sink.SendShared(to, value);
}

bool IsSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// As C's strtoll with base 10, which torch uses: blanks, a sign, at least one digit, anything
// behind; nullopt if there is no digit or the number does not fit.
std::optional<std::int64_t> ParseCounter(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) {
    text.remove_prefix(1);
  }
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') {
      return std::nullopt;
    }
  }
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  return status == std::errc() ? std::optional(number) : std::nullopt;
}

// Signed overflow wraps, as in torch.
std::int64_t WrappingSum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// The decimal text of a number.
class Decimal {
 public:
  explicit Decimal(std::int64_t number) {
    const auto [end, status] =
        std::to_chars(digits_.data(), digits_.data() + digits_.size(), number);
    DDP_CHECK(status == std::errc());
    size_ = static_cast<std::size_t>(end - digits_.data());
  }
  std::string_view view() const { return {digits_.data(), size_}; }

 private:
  std::array<char, 24> digits_{};
  std::size_t size_ = 0;
};

}  // namespace

StoreState::StoreState(StoreLimits limits) : limits_(limits) {}
StoreState::~StoreState() = default;

void StoreState::Connect(ClientId client) {
  if (clients_.size() <= static_cast<std::size_t>(client)) {
    clients_.resize(static_cast<std::size_t>(client) + 1);
  }
  DDP_CHECK(ClientOf(client).missing.empty() && ClientOf(client).granted == nullptr);
}

void StoreState::Disconnect(ClientId client, ReplySink& sink) {
  DropWait(client);
  Client& left = ClientOf(client);
  for (Node* node : std::exchange(left.watched, {})) {
    std::erase(node->second.extras->watchers, client);
    stored_bytes_ -= kWatchCost;
    EraseIfUnused(*node);
  }
  if (Node* granted = std::exchange(left.granted, nullptr)) {
    EndGrant(*granted, sink);
  }
}

Refusal StoreState::Execute(ClientId client, const Request& request, ReplySink& sink) {
  // The grant is given back after the request, so that a pop takes the granted item first.
  Node* const granted = std::exchange(ClientOf(client).granted, nullptr);
  DropWait(client);
  Refusal refusal = Dispatch(client, request, sink);
  if (granted != nullptr) {
    EndGrant(*granted, sink);
  }
  return refusal;
}

std::int64_t StoreState::joined_clients() const {
  const auto found = table_.find(kJoinKey);
  if (found == table_.end() || !found->second.has_value) {
    return 0;
  }
  return ParseCounter(found->second.value.view()).value_or(0);
}

Refusal StoreState::Dispatch(ClientId client, const Request& request, ReplySink& sink) {
  switch (request.operation) {
    case Operation::kValidate:
      return std::nullopt;  // The parser has done what it asks for.
    case Operation::kPing:
      sink.Send(client, AsView(EncodeI64(request.number)).substr(0, 4));
      return std::nullopt;
    case Operation::kSet:
      return Set(request.key, NewValue(request), sink);
    case Operation::kCompareSet:
      return CompareSet(client, request, sink);
    case Operation::kGet:
      Get(client, request.key, sink);
      return std::nullopt;
    case Operation::kAdd:
      return Add(client, request, sink);
    case Operation::kCheck:
      Check(client, request, sink);
      return std::nullopt;
    case Operation::kWait:
      return Wait(client, request, sink);
    case Operation::kGetNumKeys:
      SendNumber(client, static_cast<std::int64_t>(num_keys_), sink);
      return std::nullopt;
    case Operation::kWatchKey:
      return Watch(client, request.key, sink);
    case Operation::kDeleteKey:
      Delete(client, request.key, sink);
      return std::nullopt;
    case Operation::kAppend:
      return Append(request.key, request.value, sink);
    case Operation::kMultiGet:
      return MultiGet(client, request, sink);
    case Operation::kMultiSet:
      return MultiSet(request, sink);
    case Operation::kCancelWait:
      SendByte(client, kWaitCanceled, sink);
      return std::nullopt;
    case Operation::kQueuePush:
      return Push(request, sink);
    case Operation::kQueuePop:
      Pop(client, request.key, sink);
      return std::nullopt;
    case Operation::kQueueLen: {
      const Node* node = Find(request.key);
      const bool queue = node != nullptr && node->second.extras != nullptr;
      SendNumber(client, queue ? static_cast<std::int64_t>(node->second.extras->queue.size()) : 0,
                 sink);
      return std::nullopt;
    }
    case Operation::kListKeys:
      return ListKeys(client, sink);
    case Operation::kBarrier:
      break;
  }
  return Barrier(client, request, sink);
}

Refusal StoreState::Set(std::string_view key, const NewValue& value, ReplySink& sink) {
  Node* const node = Store(key, Find(key), value, sink);
  if (node == nullptr) {
    return Full();
  }
  Wake(*node, sink);
  return std::nullopt;
}

Refusal StoreState::CompareSet(ClientId client, const Request& request, ReplySink& sink) {
  Node* const found = Find(request.key);
  const Value* const current = ValueOf(found);
  if (current == nullptr && !request.expected.empty()) {
    // The caller cannot tell this from success; torch has always answered so.
    SendBytes(client, request.expected, sink);
    return std::nullopt;
  }
  if (current != nullptr && current->view() != request.expected) {
    SendValue(client, *current, sink);
    return std::nullopt;
  }
  const bool created = current == nullptr;
  Node* const node = Store(request.key, found, NewValue(request), sink);
  if (node == nullptr) {
    return Full();
  }
  SendValue(client, node->second.value, sink);
  if (created) {
    Wake(*node, sink);
  }
  return std::nullopt;
}

void StoreState::Get(ClientId client, std::string_view key, ReplySink& sink) {
  const Value* const value = ValueOf(Find(key));
  SendValue(client, value == nullptr ? Value() : *value, sink);
}

Refusal StoreState::Add(ClientId client, const Request& request, ReplySink& sink) {
  std::int64_t sum = request.number;
  Node* const found = Find(request.key);
  if (const Value* const current = ValueOf(found)) {
    const std::optional<std::int64_t> number = ParseCounter(current->view());
    if (!number) {
      return "ADD on a value that is no 64-bit number";
    }
    sum = WrappingSum(*number, request.number);
  }
  Node* const node = Store(request.key, found, NewValue(Decimal(sum).view()), sink);
  if (node == nullptr) {
    return Full();
  }
  SendNumber(client, sum, sink);
  Wake(*node, sink);
  return std::nullopt;
}

void StoreState::Check(ClientId client, const Request& request, ReplySink& sink) {
  ItemReader keys(request.items);
  for (std::size_t i = 0; i < request.count; ++i) {
    if (!Present(Find(keys.Next()))) {
      SendByte(client, kNotReady, sink);
      return;
    }
  }
  SendByte(client, kReady, sink);
}

Refusal StoreState::Watch(ClientId client, std::string_view key, ReplySink& sink) {
  Node* const node = EnsureWithRoom(key, kWatchCost);
  if (node == nullptr) {
    return Full();
  }
  std::vector<Node*>& watched = ClientOf(client).watched;
  if (std::find(watched.begin(), watched.end(), node) == watched.end()) {
    watched.push_back(node);
    ExtrasOf(*node).watchers.push_back(client);
    stored_bytes_ += kWatchCost;
  }
  SendByte(client, kWatchRegistered, sink);
  return std::nullopt;
}

void StoreState::Delete(ClientId client, std::string_view key, ReplySink& sink) {
  Node* const node = Find(key);
  if (node == nullptr || !node->second.has_value) {
    SendNumber(client, 0, sink);
    return;
  }
  Entry& entry = node->second;
  Notify(*node, kKeyDeleted, entry.value.view(), {}, sink);
  stored_bytes_ -= entry.value.size();
  key_bytes_ -= node->first.size();
  --num_keys_;
  entry.has_value = false;
  entry.value = Value();
  EraseIfUnused(*node);
  SendNumber(client, 1, sink);
}

Refusal StoreState::Append(std::string_view key, std::string_view bytes, ReplySink& sink) {
  Node* const node = Find(key);
  if (node == nullptr || !node->second.has_value) {
    return Set(key, NewValue(bytes), sink);
  }
  if (!Fits(bytes.size())) {
    return Full();
  }
  Value& value = node->second.value;
  const bool watched = node->second.extras && !node->second.extras->watchers.empty();
  const std::string before(watched ? value.view() : std::string_view());
  value.Append(bytes);
  stored_bytes_ += bytes.size();
  Notify(*node, kKeyUpdated, before, value.view(), sink);
  Wake(*node, sink);
  return std::nullopt;
}

Refusal StoreState::MultiGet(ClientId client, const Request& request, ReplySink& sink) {
  ItemReader keys(request.items);
  std::size_t reply_bytes = 0;
  for (std::size_t i = 0; i < request.count; ++i) {
    const Value* const found = ValueOf(Find(keys.Next()));
    const Value empty;
    const Value& value = found == nullptr ? empty : *found;
    reply_bytes += kLengthSize + value.size();
    if (reply_bytes > limits_.max_reply) {
      return fmt::format("MULTI_GET with a reply of more than {} bytes", limits_.max_reply);
    }
    SendValue(client, value, sink);
  }
  return std::nullopt;
}

Refusal StoreState::MultiSet(const Request& request, ReplySink& sink) {
  ItemReader items(request.items);
  for (std::size_t i = 0; i < request.count; ++i) {
    const std::string_view key = items.Next();
    if (Refusal refusal = Set(key, NewValue(items.Next()), sink)) {
      return refusal;
    }
  }
  return std::nullopt;
}

Refusal StoreState::Push(const Request& request, ReplySink& sink) {
  Node* const node = EnsureWithRoom(request.key, request.value.size() + kItemCost);
  if (node == nullptr) {
    return Full();
  }
  NewValue(request).AssignTo(ExtrasOf(*node).queue.emplace_back());
  stored_bytes_ += request.value.size() + kItemCost;
  SeeQueue(*node);
  ReleaseQueueWaiters(*node, sink);
  return std::nullopt;
}

void StoreState::Pop(ClientId client, std::string_view key, ReplySink& sink) {
  Node* const node = Find(key);
  if (node == nullptr || !node->second.extras || node->second.extras->queue.empty()) {
    SendNumber(client, 0, sink);
    return;
  }
  std::list<Value>& queue = node->second.extras->queue;
  SendNumber(client, static_cast<std::int64_t>(queue.size()), sink);
  SendValue(client, queue.front(), sink);
  stored_bytes_ -= queue.front().size() + kItemCost;
  queue.pop_front();
  EraseIfUnused(*node);
}

Refusal StoreState::ListKeys(ClientId client, ReplySink& sink) {
  const std::size_t reply_bytes = kLengthSize * (num_keys_ + 1) + key_bytes_;
  if (reply_bytes > limits_.max_reply) {
    return fmt::format("LIST_KEYS with a reply of {} bytes, the limit is {}", reply_bytes,
                       limits_.max_reply);
  }
  SendNumber(client, static_cast<std::int64_t>(num_keys_), sink);
  for (const auto& [key, entry] : table_) {
    if (entry.has_value) {
      SendBytes(client, key, sink);
    }
  }
  return std::nullopt;
}

// The counter is an ordinary key and is never reset, so a finished barrier passes at once.
Refusal StoreState::Barrier(ClientId client, const Request& request, ReplySink& sink) {
  std::int64_t count = 1;
  Node* const found = Find(request.key);
  if (const Value* const current = ValueOf(found)) {
    const std::optional<std::int64_t> number = ParseCounter(current->view());
    if (!number) {
      return "BARRIER on a value that is no 64-bit number";
    }
    count = WrappingSum(*number, 1);
  }
  Node* const node = Store(request.key, found, NewValue(Decimal(count).view()), sink);
  if (node == nullptr) {
    return Full();
  }
  if (count < request.number) {
    ClientOf(client).in_barrier = true;
    return AddWaiter(client, *node);
  }
  SendByte(client, kStopWaiting, sink);
  Wake(*node, sink);
  return std::nullopt;
}

}  // namespace ddprun
