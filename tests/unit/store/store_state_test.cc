// Operations of StoreState. Conformance numbers are those of the list in docs/protocol.md; where a
// case runs for both numberings, A is torch 1.x and C is torch 2.2 and newer.

#include "rendezvous/store/store_state.h"

#include <limits>

#include "tests/support/catch.h"
#include "tests/unit/store/store_harness.h"

namespace ddprun {
namespace {

using wire::I64;
using wire::List;
using wire::Message;
using wire::Opcodes;
using wire::Str;
using wire::U64;

const std::string kZero(1, '\0');
const std::string kOne(1, '\1');

// A store, a client of the dialect under test and short names for its requests.
struct Bench {
  explicit Bench(bool dialect_c)
      : ops(dialect_c ? wire::kC : wire::kA), client(store.NewClient(dialect_c)) {}

  std::string Set(const std::string& key, const std::string& value) {
    return store.Send(client, Message(ops.set, Str(key) + Str(value)));
  }
  std::string Get(const std::string& key) { return store.Send(client, Message(ops.get, Str(key))); }
  std::string Add(const std::string& key, std::int64_t delta) {
    return store.Send(client, Message(ops.add, Str(key) + I64(delta)));
  }
  std::string CompareSet(const std::string& key, const std::string& expected,
                         const std::string& desired) {
    return store.Send(client, Message(ops.compare_set, Str(key) + Str(expected) + Str(desired)));
  }
  std::string NumKeys() { return store.Send(client, Message(ops.num_keys)); }
  std::string Delete(const std::string& key) {
    return store.Send(client, Message(ops.remove, Str(key)));
  }
  // Another client that waits for a key.
  ClientId Waiter(const std::string& key) {
    const ClientId waiter = store.NewClient();
    CHECK(store.Send(waiter, Message(wire::kC.wait, List({key}))).empty());
    return waiter;
  }

  StoreHarness store;
  const Opcodes& ops;
  ClientId client;
};

TEST_CASE("add to an absent key gives the delta as decimal text (conformance 10)") {
  Bench bench(GENERATE(true, false));
  CHECK(bench.Add("/n", 5) == I64(5));
  CHECK(bench.Get("/n") == Str("5"));
  CHECK(bench.Add("/n", -7) == I64(-2));
  CHECK(bench.Get("/n") == Str("-2"));
}

TEST_CASE("add of zero creates the key and wakes its waiter (conformance 11)") {
  Bench bench(GENERATE(true, false));
  const ClientId waiter = bench.Waiter("/n");
  CHECK(bench.NumKeys() == I64(0));
  CHECK(bench.Add("/n", 0) == I64(0));
  CHECK(bench.store.Take(waiter) == kZero);
  CHECK(bench.NumKeys() == I64(1));
  CHECK(bench.Get("/n") == Str("0"));
}

TEST_CASE("add on what is no number refuses the client alone (conformance 12)") {
  for (const char* text :
       {"abc", "", "+-1", "--1", "- 1", "9223372036854775808", "-9223372036854775809"}) {
    CAPTURE(text);
    Bench bench(GENERATE(true, false));
    bench.Set("/k", text);
    CHECK(bench.Add("/k", 1).empty());
    CHECK(bench.store.refusal(bench.client) == "ADD on a value that is no 64-bit number");
    const ClientId other = bench.store.NewClient();
    CHECK(bench.store.Send(other, Message(wire::kC.get, Str("/k"))) == Str(text));
  }
}

TEST_CASE("add reads numbers as strtoll does and wraps around (conformance 13)") {
  Bench bench(GENERATE(true, false));
  for (const char* text : {"12abc", " 12", "\t\n+12 ", "0012", "12.9"}) {
    CAPTURE(text);
    bench.Set("/k", text);
    CHECK(bench.Add("/k", 1) == I64(13));
  }
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  CHECK(bench.Add("/m", kMax) == I64(kMax));
  CHECK(bench.Add("/m", 1) == I64(kMin));
  CHECK(bench.Get("/m") == Str("-9223372036854775808"));
}

TEST_CASE("compare_set follows its four rows (conformance 14)") {
  Bench bench(GENERATE(true, false));
  CHECK(bench.CompareSet("/c", "exp", "new") == Str("exp"));
  CHECK(bench.NumKeys() == I64(0));
  CHECK(bench.CompareSet("/c", "", "new") == Str("new"));
  CHECK(bench.CompareSet("/c", "other", "x") == Str("new"));
  CHECK(bench.CompareSet("/c", "new", "x") == Str("x"));
  CHECK(bench.Get("/c") == Str("x"));
  bench.Set("/lock", "");
  CHECK(bench.CompareSet("/lock", "", "token") == Str("token"));
  CHECK(bench.CompareSet("/lock", "", "late") == Str("token"));
}

TEST_CASE("a compare_set that creates wakes a waiter, a refused one does not (conformance 15)") {
  Bench bench(GENERATE(true, false));
  const ClientId waiter = bench.Waiter("/c");
  bench.CompareSet("/c", "exp", "new");
  CHECK(bench.store.Take(waiter).empty());
  bench.CompareSet("/c", "", "new");
  CHECK(bench.store.Take(waiter) == kZero);
}

TEST_CASE("set has no reply, so three glued requests give one (conformance 16)") {
  Bench bench(GENERATE(true, false));
  const std::string glued = Message(bench.ops.set, Str("/a") + Str("1")) +
                            Message(bench.ops.set, Str("/b") + Str("2")) +
                            Message(bench.ops.add, Str("/n") + I64(3));
  CHECK(bench.store.Send(bench.client, glued) == I64(3));
  CHECK(bench.Get("/a") == Str("1"));
  CHECK(bench.Get("/b") == Str("2"));
}

TEST_CASE("get of an absent key and of an empty value gives length zero (conformance 17, 18)") {
  Bench bench(GENERATE(true, false));
  CHECK(bench.Get("/none") == U64(0));
  bench.Set("/e", "");
  CHECK(bench.Get("/e") == U64(0));
  CHECK(bench.NumKeys() == I64(1));
}

TEST_CASE("delete_key tells whether the key was there (conformance 19)") {
  Bench bench(GENERATE(true, false));
  bench.Set("/k", "v");
  bench.Set("/l", "v");
  CHECK(bench.Delete("/k") == I64(1));
  CHECK(bench.NumKeys() == I64(1));
  CHECK(bench.Delete("/k") == I64(0));
  CHECK(bench.NumKeys() == I64(1));
}

TEST_CASE("check and wait without keys are ready (conformance 20)") {
  Bench bench(GENERATE(true, false));
  CHECK(bench.store.Send(bench.client, Message(bench.ops.check, List({}))) == kZero);
  CHECK(bench.store.Send(bench.client, Message(bench.ops.wait, List({}))) == kZero);
}

TEST_CASE("check needs all keys (conformance 21)") {
  Bench bench(GENERATE(true, false));
  bench.Set("/a", "");
  const auto check = [&](std::initializer_list<std::string_view> keys) {
    return bench.store.Send(bench.client, Message(bench.ops.check, List(keys)));
  };
  CHECK(check({"/a"}) == kZero);
  CHECK(check({"/a", "/b"}) == kOne);
  CHECK(check({"/b", "/a"}) == kOne);
  bench.Set("/b", "1");
  CHECK(check({"/b", "/a", "/a"}) == kZero);
}

TEST_CASE("num_keys counts the join key and no queues (conformance 22)") {
  Bench bench(true);
  bench.Add("init/", 1);
  CHECK(bench.store.state().joined_clients() == 1);
  bench.store.Send(bench.client, Message(wire::kC.push, Str("/q") + Str("x")));
  CHECK(bench.NumKeys() == I64(1));
}

TEST_CASE("nobody has joined while the join key is absent or no number") {
  Bench bench(true);
  CHECK(bench.store.state().joined_clients() == 0);
  bench.Set("init/", "x");
  CHECK(bench.store.state().joined_clients() == 0);
}

TEST_CASE("multi_get keeps order and takes a key twice (conformance 23)") {
  Bench bench(true);
  bench.Set("/a", "1");
  bench.Set("/b", "22");
  CHECK(bench.store.Send(bench.client,
                         Message(wire::kC.multi_get, List({"/b", "/a", "/none", "/b"}))) ==
        Str("22") + Str("1") + Str("") + Str("22"));
  CHECK(bench.store.Send(bench.client, Message(wire::kC.multi_get, List({}))).empty());
}

TEST_CASE("multi_set sets all, and none is legal (conformance 24)") {
  Bench bench(true);
  const ClientId waiter = bench.Waiter("/b");
  CHECK(bench.store.Send(bench.client, Message(wire::kC.multi_set, U64(0))).empty());
  CHECK(bench.NumKeys() == I64(0));
  CHECK(bench.store
            .Send(bench.client,
                  Message(wire::kC.multi_set, U64(2) + Str("/a") + Str("1") + Str("/b") + Str("2")))
            .empty());
  CHECK(bench.Get("/b") == Str("2"));
  CHECK(bench.store.Take(waiter) == kZero);
}

TEST_CASE("append creates, extends and wakes (conformance 25)") {
  Bench bench(true);
  const ClientId waiter = bench.Waiter("/k");
  const auto append = [&](const std::string& bytes) {
    return bench.store.Send(bench.client, Message(wire::kC.append, Str("/k") + Str(bytes)));
  };
  CHECK(append("v").empty());
  CHECK(bench.store.Take(waiter) == kZero);
  CHECK(append("w").empty());
  CHECK(bench.Get("/k") == Str("vw"));
  append(std::string(5000, 'x'));
  append("end");
  CHECK(bench.Get("/k") == Str("vw" + std::string(5000, 'x') + "end"));
}

TEST_CASE("list_keys gives every key once with its slash (conformance 26)") {
  Bench bench(true);
  bench.Add("init/", 1);
  bench.Set("/k", "v");
  bench.Set("/k", "w");
  bench.store.Send(bench.client, Message(wire::kC.push, Str("/q") + Str("x")));
  const std::string reply = bench.store.Send(bench.client, Message(wire::kC.list));
  const std::string first = U64(2) + Str("init/") + Str("/k");
  const std::string second = U64(2) + Str("/k") + Str("init/");
  CHECK((reply == first || reply == second));
}

TEST_CASE("keys and values are any bytes, also none") {
  Bench bench(GENERATE(true, false));
  const std::string odd("\xff\0/\n", 4);
  bench.Set(odd, odd);
  bench.Set("", "empty key");
  CHECK(bench.Get(odd) == Str(odd));
  CHECK(bench.Get("") == Str("empty key"));
}

TEST_CASE("ping echoes its nonce") {
  Bench bench(true);
  CHECK(bench.store.Send(bench.client, Message(13, "\xd2\x04\xff\x80")) == "\xd2\x04\xff\x80");
}

TEST_CASE("watchers see creation, update and deletion") {
  StoreHarness store;
  const ClientId watcher = store.NewClient(false);
  CHECK(store.Send(watcher, Message(7, Str("/wk"))) == "\x03");
  CHECK(store.Send(watcher, Message(7, Str("/wk"))) == "\x03");
  const ClientId other = store.NewClient();
  store.Send(other, Message(wire::kC.set, Str("/wk") + Str("A")));
  CHECK(store.Take(watcher) == "\x01" + Str("/wk") + Str("") + Str("A"));
  store.Send(other, Message(wire::kC.set, Str("/wk") + Str("B")));
  CHECK(store.Take(watcher) == kZero + Str("/wk") + Str("A") + Str("B"));
  store.Send(other, Message(wire::kC.append, Str("/wk") + Str("C")));
  CHECK(store.Take(watcher) == kZero + Str("/wk") + Str("B") + Str("BC"));
  store.Send(other, Message(wire::kC.remove, Str("/wk")));
  CHECK(store.Take(watcher) == "\x02" + Str("/wk") + Str("BC") + Str(""));
  store.Leave(watcher);
  store.Send(other, Message(wire::kC.set, Str("/wk") + Str("D")));
  CHECK(store.Take(watcher).empty());
}

TEST_CASE("all that is stored is accounted for and given back") {
  Bench bench(true);
  const std::size_t empty = bench.store.state().stored_bytes();
  CHECK(empty == 0);
  bench.Set("/k", std::string(100, 'x'));
  bench.Set("/k", std::string(10000, 'x'));
  bench.Set("/k", "");
  bench.store.Send(bench.client, Message(wire::kC.append, Str("/k") + Str("abc")));
  bench.store.Send(bench.client, Message(wire::kC.push, Str("/q") + Str("item")));
  const ClientId waiter = bench.Waiter("/none");
  const ClientId watcher = bench.store.NewClient(false);
  bench.store.Send(watcher, Message(7, Str("/w")));
  CHECK(bench.store.state().stored_bytes() > 0);
  bench.Delete("/k");
  bench.store.Send(bench.client, Message(wire::kC.pop, Str("/q")));
  bench.store.Leave(waiter);
  bench.store.Leave(watcher);
  CHECK(bench.store.state().stored_bytes() == 0);
  CHECK(bench.store.state().num_keys() == 0);
}

TEST_CASE("a full store refuses the writer and serves the others") {
  StoreLimits limits;
  limits.max_store = 1000;
  StoreHarness store(limits);
  const ClientId reader = store.NewClient();
  store.Send(reader, Message(wire::kC.set, Str("/k") + Str("v")));
  const std::string big(900, 'x');
  for (const std::string& write :
       {Message(wire::kC.set, Str("/x") + Str(big)), Message(wire::kC.set, Str("/k") + Str(big)),
        Message(wire::kC.append, Str("/k") + Str(big)),
        Message(wire::kC.push, Str("/q") + Str(big)),
        Message(wire::kC.compare_set, Str("/k") + Str("v") + Str(big)),
        Message(wire::kC.multi_set, U64(1) + Str("/k") + Str(big)),
        Message(wire::kC.add, Str(big) + I64(1)), Message(wire::kC.barrier, Str(big) + I64(1)),
        Message(wire::kC.wait, List({"/1", "/2", "/3", "/4", "/5"}))}) {
    const ClientId writer = store.NewClient();
    CHECK(store.Send(writer, write).empty());
    CHECK(store.refusal(writer).find("the store is full") == 0);
  }
  const ClientId watcher = store.NewClient(false);
  CHECK(store.Send(watcher, Message(7, Str(big))).empty());
  CHECK_FALSE(store.refusal(watcher).empty());
  CHECK(store.Send(reader, Message(wire::kC.get, Str("/k"))) == Str("v"));
  CHECK(store.Send(reader, Message(wire::kC.num_keys)) == I64(1));
}

TEST_CASE("a reply beyond the limit refuses the client") {
  StoreLimits limits;
  limits.max_reply = 100;
  StoreHarness store(limits);
  const ClientId client = store.NewClient();
  store.Send(client,
             Message(wire::kC.set, Str("/" + std::string(50, 'k')) + Str(std::string(40, 'v'))));
  CHECK(store.Send(client, Message(wire::kC.list)).size() == 8 + 8 + 51);
  store.Send(client, Message(wire::kC.set, Str("/" + std::string(51, 'k')) + Str("")));
  store.Send(client, Message(wire::kC.list));
  CHECK(store.refusal(client).find("LIST_KEYS with a reply of") == 0);
  const ClientId other = store.NewClient();
  const std::string key = "/" + std::string(50, 'k');
  store.Send(other, Message(wire::kC.multi_get, List({key, key, key})));
  CHECK(store.refusal(other).find("MULTI_GET with a reply of") == 0);
}

}  // namespace
}  // namespace ddprun
