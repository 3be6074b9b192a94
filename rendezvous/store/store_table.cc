// The table of StoreState: finding, making, changing and erasing entries, and what they cost.

#include <fmt/format.h>

#include "rendezvous/store/store_state.h"

namespace ddprun {
namespace {

// What a key costs besides its bytes, so that tiny ones cannot fill the memory uncounted.
constexpr std::size_t kEntryCost = 192;

}  // namespace

const std::shared_ptr<ByteBuffer> StoreState::NewValue::kNoOwner;

void StoreState::NewValue::AssignTo(Value& value) const {
  if (owner == nullptr) {
    value.Assign(bytes);
  } else {
    value = Value(owner, static_cast<std::size_t>(bytes.data() - owner->view().data()));
  }
}

bool StoreState::Present(const Node* node) {
  return node != nullptr &&
         (node->second.has_value || (node->second.extras && !node->second.extras->queue.empty()));
}

StoreState::Node* StoreState::Find(std::string_view key) {
  const auto found = table_.find(key);
  return found == table_.end() ? nullptr : &*found;
}

const Value* StoreState::ValueOf(const Node* node) {
  return node != nullptr && node->second.has_value ? &node->second.value : nullptr;
}

StoreState::Node* StoreState::Ensure(std::string_view key) {
  if (Node* const node = Find(key)) {
    return node;
  }
  if (!Fits(key.size() + kEntryCost)) {
    return nullptr;
  }
  stored_bytes_ += key.size() + kEntryCost;
  return &*table_.try_emplace(std::string(key)).first;
}

StoreState::Node* StoreState::EnsureWithRoom(std::string_view key, std::size_t more) {
  Node* const node = Ensure(key);
  if (node != nullptr && !Fits(more)) {
    EraseIfUnused(*node);
    return nullptr;
  }
  return node;
}

StoreState::Extras& StoreState::ExtrasOf(Node& node) {
  if (!node.second.extras) {
    node.second.extras = std::make_unique<Extras>();
  }
  return *node.second.extras;
}

void StoreState::EraseIfUnused(Node& node) {
  std::unique_ptr<Extras>& extras = node.second.extras;
  if (extras && extras->waiters.empty() && extras->queue.empty() && extras->grants == 0 &&
      extras->watchers.empty()) {
    extras.reset();
  }
  if (!extras && !node.second.has_value) {
    stored_bytes_ -= node.first.size() + kEntryCost;
    table_.erase(table_.find(node.first));
  }
}

bool StoreState::Fits(std::size_t more) const {
  return more <= limits_.max_store && stored_bytes_ <= limits_.max_store - more;
}

std::string StoreState::Full() const {
  return fmt::format("the store is full: it holds {} bytes, the limit is {}", stored_bytes_,
                     limits_.max_store);
}

StoreState::Node* StoreState::Store(std::string_view key, Node* found, const NewValue& value,
                                    ReplySink& sink) {
  const std::size_t old_size = found == nullptr ? 0 : found->second.value.size();
  const std::size_t growth = value.bytes.size() > old_size ? value.bytes.size() - old_size : 0;
  if (found != nullptr && !Fits(growth)) {
    return nullptr;
  }
  Node* const node = found != nullptr ? found : EnsureWithRoom(key, growth);
  if (node == nullptr) {
    return nullptr;
  }
  Entry& entry = node->second;
  Notify(*node, entry.has_value ? kKeyUpdated : kKeyCreated, entry.value.view(), value.bytes, sink);
  if (!entry.has_value) {
    entry.has_value = true;
    ++num_keys_;
    key_bytes_ += key.size();
  }
  stored_bytes_ += value.bytes.size();
  stored_bytes_ -= old_size;
  value.AssignTo(entry.value);
  return node;
}

void StoreState::Notify(const Node& node, char kind, std::string_view before,
                        std::string_view after, ReplySink& sink) {
  if (!node.second.extras || node.second.extras->watchers.empty()) {
    return;
  }
  std::string message(1, kind);
  for (const std::string_view part : {std::string_view(node.first), before, after}) {
    message += AsView(EncodeU64(part.size()));
    message += part;
  }
  for (const ClientId watcher : node.second.extras->watchers) {
    sink.Send(watcher, message);
  }
}

}  // namespace ddprun
