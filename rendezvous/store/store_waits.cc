// The waiting half of StoreState: WAIT, barriers, grants of queue items.

#include <utility>

#include "rendezvous/base/check.h"
#include "rendezvous/store/store_state.h"

namespace ddprun {
namespace {

constexpr std::size_t kWaiterCost = 64;

// Beyond this a finished wait gives its memory back.
constexpr std::size_t kKeptLinks = 64;

}  // namespace

Refusal StoreState::Wait(ClientId client, const Request& request, ReplySink& sink) {
  ItemReader keys(request.items);
  for (std::size_t i = 0; i < request.count; ++i) {
    const std::string_view key = keys.Next();
    if (Present(Find(key))) {
      continue;
    }
    Node* const node = Ensure(key);
    if (node == nullptr) {
      return Full();
    }
    if (Refusal refusal = AddWaiter(client, *node)) {
      return refusal;
    }
  }
  if (ClientOf(client).missing.empty()) {
    sink.Send(client, std::string_view(&kStopWaiting, 1));
  }
  return std::nullopt;
}

Refusal StoreState::AddWaiter(ClientId client, Node& node) {
  std::list<Waiter>& waiters = ExtrasOf(node).waiters;
  // A client enters all its keys in one go, so a key named twice finds it at the end of the list.
  if (!waiters.empty() && waiters.back().client == client) {
    return std::nullopt;
  }
  if (!Fits(kWaiterCost)) {
    EraseIfUnused(node);
    return Full();
  }
  stored_bytes_ += kWaiterCost;
  std::vector<Link>& missing = ClientOf(client).missing;
  waiters.push_back(Waiter{client, missing.size()});
  missing.push_back(Link{&node, std::prev(waiters.end())});
  return std::nullopt;
}

void StoreState::Wake(Node& node, ReplySink& sink) {
  if (!node.second.extras || node.second.extras->waiters.empty()) {
    return;
  }
  std::list<Waiter> woken;
  woken.swap(node.second.extras->waiters);
  for (const Waiter& waiter : woken) {
    SeeKey(waiter);
    FinishWaitIfComplete(waiter.client, sink);
  }
  EraseIfUnused(node);
}

// Takes one key off a client's missing list. The caller takes the waiter off the key's list.
void StoreState::SeeKey(const Waiter& waiter) {
  std::vector<Link>& missing = ClientOf(waiter.client).missing;
  DDP_CHECK(waiter.link < missing.size());
  if (waiter.link + 1 < missing.size()) {
    missing[waiter.link] = missing.back();
    missing[waiter.link].position->link = waiter.link;
  }
  missing.pop_back();
  stored_bytes_ -= kWaiterCost;
}

void StoreState::FinishWaitIfComplete(ClientId client, ReplySink& sink) {
  Client& waiting = ClientOf(client);
  if (!waiting.missing.empty()) {
    return;
  }
  waiting.in_barrier = false;
  if (waiting.missing.capacity() > kKeptLinks) {
    waiting.missing.shrink_to_fit();
  }
  sink.Send(client, std::string_view(&kStopWaiting, 1));
}

void StoreState::DropWait(ClientId client) {
  Client& waiting = ClientOf(client);
  for (const Link& link : waiting.missing) {
    link.node->second.extras->waiters.erase(link.position);
    stored_bytes_ -= kWaiterCost;
    EraseIfUnused(*link.node);
  }
  waiting.missing.clear();
  waiting.in_barrier = false;
}

// A pushed key counts as seen for all who wait for further keys too: their wait does not end with
// it, so nothing is granted to them.
void StoreState::SeeQueue(Node& node) {
  std::list<Waiter>& waiters = node.second.extras->waiters;
  for (auto waiter = waiters.begin(); waiter != waiters.end();) {
    if (ClientOf(waiter->client).missing.size() > 1) {
      SeeKey(*waiter);
      waiter = waiters.erase(waiter);
    } else {
      ++waiter;
    }
  }
}

// While an item is left that is granted to nobody, the oldest client that waits for just this queue
// goes. Who waits in a barrier of the same name does not.
void StoreState::ReleaseQueueWaiters(Node& node, ReplySink& sink) {
  Extras& extras = *node.second.extras;
  for (auto waiter = extras.waiters.begin();
       waiter != extras.waiters.end() && extras.queue.size() > extras.grants;) {
    const ClientId client = waiter->client;
    if (ClientOf(client).in_barrier || ClientOf(client).missing.size() > 1) {
      ++waiter;
      continue;
    }
    SeeKey(*waiter);
    waiter = extras.waiters.erase(waiter);
    ++extras.grants;
    ClientOf(client).granted = &node;
    FinishWaitIfComplete(client, sink);
  }
}

void StoreState::EndGrant(Node& node, ReplySink& sink) {
  DDP_CHECK(node.second.extras && node.second.extras->grants > 0);
  --node.second.extras->grants;
  ReleaseQueueWaiters(node, sink);
  EraseIfUnused(node);
}

}  // namespace ddprun
