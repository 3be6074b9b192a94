// Waiting, queues and barriers of StoreState. Conformance numbers are those of docs/protocol.md.

#include <vector>

#include "tests/support/catch.h"
#include "tests/unit/store/store_harness.h"

namespace ddprun {
namespace {

using wire::I64;
using wire::List;
using wire::Message;
using wire::Str;

const std::string kStop(1, '\0');
const std::string kCanceled(1, '\1');
const std::string kCancel = Message(wire::kC.cancel);

std::string SetOf(const std::string& key) {
  return Message(wire::kC.set, Str(key) + Str("v"));
}
std::string WaitFor(std::initializer_list<std::string_view> keys) {
  return Message(wire::kC.wait, List(keys));
}
std::string Push(const std::string& item) {
  return Message(wire::kC.push, Str("/q") + Str(item));
}
const std::string kPop = Message(wire::kC.pop, Str("/q"));
const std::string kLength = Message(wire::kC.length, Str("/q"));
std::string Barrier(std::int64_t size) {
  return Message(wire::kC.barrier, Str("/b") + I64(size));
}

struct Crowd {
  StoreHarness store;
  ClientId a = store.NewClient();
  ClientId b = store.NewClient();
  ClientId c = store.NewClient();
  ClientId d = store.NewClient();
};

TEST_CASE("a wait on three keys ends once, with the last of them (conformance 27)") {
  const bool swapped = GENERATE(false, true);
  Crowd crowd;
  crowd.store.Send(crowd.b, SetOf("/2"));
  CHECK(crowd.store.Send(crowd.a, WaitFor({"/1", "/2", "/3"})).empty());
  crowd.store.Send(crowd.b, SetOf(swapped ? "/3" : "/1"));
  crowd.store.Send(crowd.b, SetOf(swapped ? "/3" : "/1"));
  CHECK(crowd.store.Take(crowd.a).empty());
  crowd.store.Send(crowd.b, SetOf(swapped ? "/1" : "/3"));
  CHECK(crowd.store.Take(crowd.a) == kStop);
  crowd.store.Send(crowd.b, SetOf("/1"));
  CHECK(crowd.store.Take(crowd.a).empty());
}

TEST_CASE("a missing key named twice needs one set (conformance 28)") {
  Crowd crowd;
  CHECK(crowd.store.Send(crowd.a, WaitFor({"/1", "/1"})).empty());
  crowd.store.Send(crowd.b, SetOf("/1"));
  CHECK(crowd.store.Take(crowd.a) == kStop);
}

TEST_CASE("many waiters on one key get one byte each (conformance 29)") {
  StoreHarness store;
  std::vector<ClientId> waiters;
  for (int i = 0; i < 1000; ++i) {
    waiters.push_back(store.NewClient());
    store.Send(waiters.back(), WaitFor({"/go"}));
  }
  const ClientId setter = store.NewClient();
  store.Send(setter, SetOf("/go"));
  store.Send(setter, SetOf("/go"));
  for (const ClientId waiter : waiters) {
    REQUIRE(store.Take(waiter) == kStop);
  }
}

TEST_CASE("a cancelled wait stays silent (conformance 30)") {
  Crowd crowd;
  crowd.store.Send(crowd.a, WaitFor({"/k"}));
  CHECK(crowd.store.Send(crowd.a, kCancel) == kCanceled);
  crowd.store.Send(crowd.b, SetOf("/k"));
  CHECK(crowd.store.Take(crowd.a).empty());
}

TEST_CASE("cancelling without a wait is answered (conformance 31)") {
  Crowd crowd;
  CHECK(crowd.store.Send(crowd.a, kCancel) == kCanceled);
}

TEST_CASE("a release that crosses the cancel gives both bytes in order (conformance 32)") {
  Crowd crowd;
  crowd.store.Send(crowd.a, WaitFor({"/k"}));
  crowd.store.Send(crowd.b, SetOf("/k"));
  CHECK(crowd.store.Send(crowd.a, kCancel) == kStop + kCanceled);
}

TEST_CASE("another request drops the wait silently (conformance 33)") {
  const bool dialect_c = GENERATE(true, false);
  StoreHarness store;
  const wire::Opcodes& ops = dialect_c ? wire::kC : wire::kA;
  const ClientId client = store.NewClient(dialect_c);
  CHECK(store.Send(client, Message(ops.wait, List({"/k", "/l"}))).empty());
  CHECK(store.Send(client, Message(ops.set, Str("/k") + Str("v"))).empty());
  CHECK(store.Send(client, Message(ops.add, Str("/n") + I64(1))) == I64(1));
  const ClientId other = store.NewClient();
  store.Send(other, SetOf("/l"));
  CHECK(store.Take(client).empty());
}

TEST_CASE("a new wait replaces the pending one") {
  Crowd crowd;
  crowd.store.Send(crowd.a, WaitFor({"/1"}));
  crowd.store.Send(crowd.a, WaitFor({"/2"}));
  crowd.store.Send(crowd.b, SetOf("/1"));
  CHECK(crowd.store.Take(crowd.a).empty());
  crowd.store.Send(crowd.b, SetOf("/2"));
  CHECK(crowd.store.Take(crowd.a) == kStop);
}

TEST_CASE("a waiter that leaves is forgotten (conformance 35)") {
  Crowd crowd;
  crowd.store.Send(crowd.a, WaitFor({"/k", "/l"}));
  crowd.store.Leave(crowd.a);
  crowd.store.Send(crowd.b, SetOf("/k") + SetOf("/l"));
  CHECK(crowd.store.Take(crowd.a).empty());
  CHECK(crowd.store.state().num_keys() == 2);
}

TEST_CASE("a key set and deleted during the wait counts as seen (conformance 36)") {
  Crowd crowd;
  crowd.store.Send(crowd.a, WaitFor({"/k", "/l"}));
  crowd.store.Send(crowd.b, SetOf("/k") + Message(wire::kC.remove, Str("/k")));
  CHECK(crowd.store.Take(crowd.a).empty());
  crowd.store.Send(crowd.b, SetOf("/l"));
  CHECK(crowd.store.Take(crowd.a) == kStop);
}

TEST_CASE("waiting for many keys, set in another order, costs one byte") {
  Crowd crowd;
  std::string keys = wire::U64(2000);
  for (int i = 0; i < 2000; ++i) {
    keys += Str("/" + std::to_string(i));
  }
  crowd.store.Send(crowd.a, Message(wire::kC.wait, keys));
  for (int i = 0; i < 2000; ++i) {
    CHECK(crowd.store.Take(crowd.a).empty());
    crowd.store.Send(crowd.b, SetOf("/" + std::to_string(i * 7 % 2000)));
  }
  CHECK(crowd.store.Take(crowd.a) == kStop);
}

TEST_CASE("a queue is first in first out over clients (conformance 37)") {
  Crowd crowd;
  CHECK(crowd.store.Send(crowd.a, kPop) == I64(0));
  CHECK(crowd.store.Send(crowd.a, kLength) == I64(0));
  CHECK(crowd.store.Send(crowd.a, Push("1") + Push("2")).empty());
  CHECK(crowd.store.Send(crowd.b, kLength) == I64(2));
  CHECK(crowd.store.Send(crowd.b, kPop) == I64(2) + Str("1"));
  CHECK(crowd.store.Send(crowd.a, kLength) == I64(1));
  CHECK(crowd.store.Send(crowd.a, kPop) == I64(1) + Str("2"));
  CHECK(crowd.store.Send(crowd.b, kPop) == I64(0));
}

TEST_CASE("a queue and a value of one key are two things") {
  Crowd crowd;
  crowd.store.Send(crowd.a, Push("item") + SetOf("/q"));
  CHECK(crowd.store.Send(crowd.a, Message(wire::kC.get, Str("/q"))) == Str("v"));
  CHECK(crowd.store.Send(crowd.a, Message(wire::kC.remove, Str("/q"))) == I64(1));
  CHECK(crowd.store.Send(crowd.a, kPop) == I64(1) + Str("item"));
}

TEST_CASE("each push releases one waiter, a lost one is replaced (conformance 38)") {
  Crowd crowd;
  for (const ClientId waiter : {crowd.a, crowd.b, crowd.c}) {
    CHECK(crowd.store.Send(waiter, WaitFor({"/q"})).empty());
  }
  crowd.store.Send(crowd.d, Push("1") + Push("2"));
  CHECK(crowd.store.Take(crowd.a) == kStop);
  CHECK(crowd.store.Take(crowd.b) == kStop);
  CHECK(crowd.store.Take(crowd.c).empty());
  SECTION("it disconnects") {
    crowd.store.Leave(crowd.a);
    CHECK(crowd.store.Take(crowd.c) == kStop);
  }
  SECTION("it sends something else") {
    crowd.store.Send(crowd.a, kLength);
    CHECK(crowd.store.Take(crowd.c) == kStop);
  }
  SECTION("it cancels") {
    CHECK(crowd.store.Send(crowd.a, kCancel) == kCanceled);
    CHECK(crowd.store.Take(crowd.c) == kStop);
  }
  SECTION("it pops") {
    CHECK(crowd.store.Send(crowd.a, kPop) == I64(2) + Str("1"));
    CHECK(crowd.store.Send(crowd.b, kPop) == I64(1) + Str("2"));
    CHECK(crowd.store.Take(crowd.c).empty());
    crowd.store.Send(crowd.d, Push("3"));
    CHECK(crowd.store.Take(crowd.c) == kStop);
  }
  SECTION("an item is taken past it") {
    crowd.store.Send(crowd.d, kPop + kPop);
    CHECK(crowd.store.Send(crowd.a, kPop) == I64(0));
    crowd.store.Leave(crowd.b);
    CHECK(crowd.store.Take(crowd.c).empty());
    crowd.store.Send(crowd.d, Push("3"));
    CHECK(crowd.store.Take(crowd.c) == kStop);
  }
}

TEST_CASE("a waiter released by its own grant's end may push again") {
  Crowd crowd;
  crowd.store.Send(crowd.a, WaitFor({"/q"}));
  crowd.store.Send(crowd.b, WaitFor({"/q"}));
  crowd.store.Send(crowd.d, Push("1"));
  CHECK(crowd.store.Take(crowd.a) == kStop);
  crowd.store.Send(crowd.a, Push("2"));
  CHECK(crowd.store.Take(crowd.b) == kStop);
  CHECK(crowd.store.Send(crowd.b, kLength) == I64(2));
}

TEST_CASE("a queue with items counts as present in a wait (conformance 39)") {
  Crowd crowd;
  crowd.store.Send(crowd.b, Push("1"));
  CHECK(crowd.store.Send(crowd.a, Message(wire::kC.check, List({"/q"}))) == kStop);
  CHECK(crowd.store.Send(crowd.a, WaitFor({"/q", "/k"})).empty());
  crowd.store.Send(crowd.b, SetOf("/k"));
  CHECK(crowd.store.Take(crowd.a) == kStop);
}

TEST_CASE("a push counts as seen for a wait that needs more, and wakes another") {
  Crowd crowd;
  crowd.store.Send(crowd.a, WaitFor({"/q", "/k"}));
  crowd.store.Send(crowd.b, WaitFor({"/q"}));
  crowd.store.Send(crowd.d, Push("1"));
  CHECK(crowd.store.Take(crowd.a).empty());
  CHECK(crowd.store.Take(crowd.b) == kStop);
  crowd.store.Send(crowd.d, SetOf("/k"));
  CHECK(crowd.store.Take(crowd.a) == kStop);
}

TEST_CASE("a later push does not end an unrelated wait of the same client") {
  Crowd crowd;
  crowd.store.Send(crowd.a, WaitFor({"/q"}));
  crowd.store.Send(crowd.b, Push("1"));
  CHECK(crowd.store.Take(crowd.a) == kStop);
  crowd.store.Send(crowd.a, WaitFor({"/other"}));
  crowd.store.Send(crowd.b, Push("2"));
  CHECK(crowd.store.Take(crowd.a).empty());
}

TEST_CASE("the last of a barrier releases all, once each (conformance 40)") {
  Crowd crowd;
  CHECK(crowd.store.Send(crowd.a, Barrier(3)).empty());
  CHECK(crowd.store.Send(crowd.b, Barrier(3)).empty());
  CHECK(crowd.store.Send(crowd.c, Barrier(3)) == kStop);
  CHECK(crowd.store.Take(crowd.a) == kStop);
  CHECK(crowd.store.Take(crowd.b) == kStop);
  CHECK(crowd.store.Send(crowd.a, Message(wire::kC.get, Str("/b"))) == Str("3"));
  CHECK(crowd.store.Send(crowd.a, Barrier(3)) == kStop);
  CHECK(crowd.store.Send(crowd.b, Barrier(0)) == kStop);
  CHECK(crowd.store.Send(crowd.b, Barrier(-1)) == kStop);
}

TEST_CASE("a cancelled barrier keeps its count (conformance 41)") {
  Crowd crowd;
  crowd.store.Send(crowd.a, Barrier(2));
  CHECK(crowd.store.Send(crowd.a, kCancel) == kCanceled);
  CHECK(crowd.store.Send(crowd.b, Message(wire::kC.get, Str("/b"))) == Str("1"));
  CHECK(crowd.store.Send(crowd.b, Barrier(2)) == kStop);
  CHECK(crowd.store.Take(crowd.a).empty());
}

TEST_CASE("a set, add or append on the barrier's key releases it, a push does not") {
  for (const std::string& write : {SetOf("/b"), Message(wire::kC.add, Str("/b") + I64(1)),
                                   Message(wire::kC.append, Str("/b") + Str("0"))}) {
    Crowd crowd;
    crowd.store.Send(crowd.a, Barrier(9));
    crowd.store.Send(crowd.b, Message(wire::kC.push, Str("/b") + Str("x")));
    CHECK(crowd.store.Take(crowd.a).empty());
    crowd.store.Send(crowd.b, write);
    CHECK(crowd.store.Take(crowd.a) == kStop);
  }
}

TEST_CASE("a barrier on what is no number refuses the client") {
  Crowd crowd;
  crowd.store.Send(crowd.a, SetOf("/b"));
  CHECK(crowd.store.Send(crowd.a, Barrier(2)).empty());
  CHECK(crowd.store.refusal(crowd.a) == "BARRIER on a value that is no 64-bit number");
}

}  // namespace
}  // namespace ddprun
