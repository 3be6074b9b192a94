// Properties of the store's parser and state over random request streams.

#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/unit/store/store_harness.h"

namespace ddprun {
namespace {

using wire::I64;
using wire::List;
using wire::Message;
using wire::Str;
using wire::U64;

std::string AnyKey() {
  return "/" + std::to_string(*rc::gen::inRange(0, 4));
}

std::string AnyBytes() {
  return *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
}

// Any whole request of dialect C that is legal everywhere.
std::string AnyRequest() {
  const std::string key = AnyKey();
  switch (*rc::gen::inRange(0, 14)) {
    case 0:
      return Message(wire::kC.set, Str(key) + Str(AnyBytes()));
    case 1:
      return Message(wire::kC.compare_set, Str(key) + Str("") + Str(AnyBytes()));
    case 2:
      return Message(wire::kC.get, Str(key));
    case 3:
      return Message(wire::kC.check, List({key, AnyKey()}));
    case 4:
      return Message(wire::kC.wait, List({key, AnyKey(), key}));
    case 5:
      return Message(wire::kC.num_keys);
    case 6:
      return Message(wire::kC.remove, Str(key));
    case 7:
      return Message(wire::kC.append, Str(key) + Str(AnyBytes()));
    case 8:
      return Message(wire::kC.multi_get, List({key, AnyKey()}));
    case 9:
      return Message(wire::kC.cancel);
    case 10:
      return Message(wire::kC.push, Str(key) + Str(AnyBytes()));
    case 11:
      return Message(wire::kC.pop, Str(key));
    case 12:
      return Message(wire::kC.length, Str(key));
    default:
      return Message(wire::kC.list);
  }
}

template <typename Body>
void Holds(const char* name, Body body) {
  INFO(name);
  CHECK(rc::check(name, body));
}

TEST_CASE("a stream parses the same however it is cut") {
  Holds("cuts do not matter", []() {
    std::string stream = wire::kHelloC;
    const int requests = *rc::gen::inRange(1, 12);
    for (int i = 0; i < requests; ++i) {
      stream += AnyRequest();
    }
    const std::size_t piece = *rc::gen::inRange<std::size_t>(1, stream.size() + 1);
    RequestParser parser({});
    std::string held;
    std::size_t consumed = 0;
    int found = -1;  // The hello is one too.
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      held += stream.substr(at, piece);
      while (parser.Next(held) == ParseResult::kRequest) {
        consumed += parser.request().size;
        held.erase(0, parser.request().size);
        ++found;
      }
    }
    RC_ASSERT(found == requests);
    RC_ASSERT(consumed == stream.size());
  });
}

TEST_CASE("set, get and delete agree with a map") {
  Holds("the store is a map", []() {
    StoreHarness store;
    const ClientId client = store.NewClient();
    std::map<std::string, std::string> model;
    const int steps = *rc::gen::inRange(1, 60);
    for (int i = 0; i < steps; ++i) {
      const std::string key = AnyKey();
      switch (*rc::gen::inRange(0, 4)) {
        case 0:
          model[key] = AnyBytes();
          store.Send(client, Message(wire::kC.set, Str(key) + Str(model[key])));
          break;
        case 1: {
          const std::string more = AnyBytes();
          model[key] += more;
          store.Send(client, Message(wire::kC.append, Str(key) + Str(more)));
          break;
        }
        case 2:
          RC_ASSERT(store.Send(client, Message(wire::kC.remove, Str(key))) ==
                    I64(static_cast<std::int64_t>(model.erase(key))));
          break;
        default:
          RC_ASSERT(store.Send(client, Message(wire::kC.get, Str(key))) ==
                    Str(model.contains(key) ? model[key] : ""));
      }
      RC_ASSERT(store.state().num_keys() == model.size());
    }
  });
}

TEST_CASE("nothing is left of clients that are gone but their keys and items") {
  Holds("all is given back", []() {
    StoreHarness store;
    std::vector<ClientId> clients;
    for (int i = 0; i < 4; ++i) {
      clients.push_back(store.NewClient());
    }
    const int steps = *rc::gen::inRange(1, 80);
    for (int i = 0; i < steps; ++i) {
      store.Send(clients[*rc::gen::inRange<std::size_t>(0, 4)], AnyRequest());
    }
    for (const ClientId client : clients) {
      store.Leave(client);
    }
    const ClientId last = store.NewClient();
    for (int i = 0; i < 4; ++i) {
      const std::string key = "/" + std::to_string(i);
      store.Send(last, Message(wire::kC.remove, Str(key)));
      while (store.Send(last, Message(wire::kC.pop, Str(key))) != I64(0)) {
      }
    }
    RC_ASSERT(store.state().stored_bytes() == 0u);
  });
}

TEST_CASE("while an item is free, nobody waits for its queue alone") {
  Holds("no lost wake-up", []() {
    StoreHarness store;
    std::vector<ClientId> clients;
    std::vector<bool> waiting(5, false);
    std::vector<bool> released(5, false);
    for (int i = 0; i < 5; ++i) {
      clients.push_back(store.NewClient());
    }
    std::size_t length = 0;
    const auto look = [&]() {
      for (std::size_t i = 0; i < clients.size(); ++i) {
        if (waiting[i] && !store.Take(clients[i]).empty()) {
          waiting[i] = false;
          released[i] = true;
        }
      }
    };
    const int steps = *rc::gen::inRange(1, 80);
    for (int step = 0; step < steps; ++step) {
      const std::size_t who = *rc::gen::inRange<std::size_t>(0, 5);
      waiting[who] = false;
      released[who] = false;
      switch (*rc::gen::inRange(0, 3)) {
        case 0:
          store.Send(clients[who], Message(wire::kC.push, Str("/q") + Str("x")));
          ++length;
          break;
        case 1:
          store.Send(clients[who], Message(wire::kC.pop, Str("/q")));
          length -= length > 0 ? 1 : 0;
          break;
        default:
          waiting[who] = store.Send(clients[who], Message(wire::kC.wait, List({"/q"}))).empty();
      }
      look();
      const auto granted =
          static_cast<std::size_t>(std::count(released.begin(), released.end(), true));
      const bool somebody_waits = std::count(waiting.begin(), waiting.end(), true) > 0;
      RC_ASSERT(!somebody_waits || length <= granted);
    }
  });
}

TEST_CASE("a million random streams after a valid hello do no harm (conformance 49)") {
  // Cheap bytes: rapidcheck would spend its time in making them.
  std::uint64_t random = 0x9e3779b97f4a7c15U;
  const auto next = [&]() {
    random ^= random << 13U;
    random ^= random >> 7U;
    random ^= random << 17U;
    return random;
  };
  std::size_t refused = 0;
  for (int i = 0; i < 1000000; ++i) {
    RequestParser parser({});
    std::string stream = wire::kHelloC;
    const std::size_t size = next() % 48;
    for (std::size_t at = 0; at < size; ++at) {
      // Mostly small numbers, so that lengths and opcodes are often believable.
      const std::uint64_t bits = next();
      stream.push_back(static_cast<char>((bits & 7U) != 0 ? (bits >> 8U) % 20 : bits >> 8U));
    }
    std::string_view rest = stream;
    ParseResult result = parser.Next(rest);
    while (result == ParseResult::kRequest) {
      rest.remove_prefix(parser.request().size);
      result = parser.Next(rest);
    }
    refused += result == ParseResult::kRefused ? 1 : 0;
  }
  CHECK(refused > 100000);
}

}  // namespace
}  // namespace ddprun
