// TcpStoreServer over real sockets. Conformance numbers are those of docs/protocol.md.

#include <algorithm>
#include <deque>

#include "tests/unit/store/server_harness.h"

namespace ddprun {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using wire::I64;
using wire::List;
using wire::Message;
using wire::Str;
using wire::U64;

const std::string kStop(1, '\0');

std::string AddC(const std::string& key, std::int64_t delta) {
  return Message(wire::kC.add, Str(key) + I64(delta));
}
std::string SetC(const std::string& key, const std::string& value) {
  return Message(wire::kC.set, Str(key) + Str(value));
}
std::string GetC(const std::string& key) {
  return Message(wire::kC.get, Str(key));
}

milliseconds Since(steady_clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
}

TEST_CASE("hello and ping are answered, whole or byte by byte (conformance 1, 2)") {
  ServerHarness server;
  RawClient whole = server.Join();
  RawClient slow(server.port());
  for (const char byte : wire::kHelloC + wire::kPing) {
    slow.Send(std::string(1, byte));
    // The answer to another client proves that the server has handled what it had by then.
    whole.Send(wire::kPing);
    CHECK(whole.Receive(4) == wire::kPong);
  }
  CHECK(slow.Receive(4) == wire::kPong);
}

TEST_CASE("strangers and broken hellos are closed and logged (conformance 3, 4, 5, 7)") {
  const auto [bytes, reason] = GENERATE(table<std::string, std::string>({
      {std::string("\x00\x3c\x85\xf7\xce", 5), "big-endian"},
      {std::string("\x00\xce\xf7\x85\x3d", 5), "key of at least"},
      {"GET /", "opcode 0x47): not a TCPStore client"},
      {"\x16\x03\x01", "opcode 0x16): not a TCPStore client"},
      {wire::kHelloC + wire::kHelloC, "torch 2.2 or newer, opcode 0x00): VALIDATE after"},
      {wire::kHelloC + "\x13", "opcode 0x13): unknown opcode"},
  }));
  ServerHarness server;
  RawClient client(server.port());
  const auto start = steady_clock::now();
  client.Send(bytes);
  CHECK(client.IsClosed());
  CHECK(Since(start) < milliseconds(100));
  CHECK(server.Logged(reason));
  CHECK(server.Logged("store: refused 127.0.0.1 port " + std::to_string(client.local_port())));
  CHECK(server.num_keys() == 0);
}

TEST_CASE("a silent connection stays open while others are served (conformance 6, shortened)") {
  ServerHarness server;
  RawClient silent(server.port());
  RawClient half(server.port());
  half.Send(std::string("\x00", 1));
  RawClient busy = server.Join();
  for (int i = 1; i <= 2000; ++i) {
    busy.Send(AddC("/n", 1));
    REQUIRE(busy.Receive(8) == I64(i));
  }
  CHECK_FALSE(silent.Readable(0));
  CHECK_FALSE(half.Readable(0));
  CHECK(server.connections() == 3);
  silent.Send(wire::kHelloC + wire::kPing);
  CHECK(silent.Receive(4) == wire::kPong);
}

TEST_CASE("clients of all dialects share the keys (conformance 8, 9)") {
  ServerHarness server;
  RawClient a(server.port());
  RawClient c = server.Join();
  a.Send(std::string("\x00", 1));
  c.Send(wire::kPing);  // Now the lone opcode is handled.
  CHECK(c.Receive(4) == wire::kPong);
  a.Send(Str("/k") + Str("v") + Message(wire::kA.num_keys));
  CHECK(a.Receive(8) == I64(1));
  c.Send(GetC("/k"));
  CHECK(c.Receive(9) == Str("v"));
  RawClient b(server.port());
  b.Send(Message(wire::kB.cancel) + Message(wire::kB.remove, Str("/k")));
  CHECK(b.Receive(9) == "\x01" + I64(1));
}

TEST_CASE("an empty value comes back at once (conformance 17)") {
  ServerHarness server;
  RawClient client = server.Join();
  client.Send(SetC("/e", "") + AddC("/n", 1));
  CHECK(client.Receive(8) == I64(1));
  std::vector<milliseconds> times;
  for (int i = 0; i < 15; ++i) {
    const auto start = steady_clock::now();
    client.Send(GetC("/e"));
    CHECK(client.Receive(8) == U64(0));
    times.push_back(Since(start));
  }
  // The median: one of them may meet a busy machine.
  std::sort(times.begin(), times.end());
  CHECK(times[times.size() / 2] < milliseconds(5));
}

TEST_CASE("waiters on real sockets are released by one set, once (conformance 29)") {
  ServerHarness server;
  std::deque<RawClient> waiters;
  for (int i = 0; i < 1000; ++i) {
    waiters.push_back(server.Join());
    waiters.back().Send(Message(wire::kC.wait, List({"/go"})));
  }
  RawClient setter = server.Join();
  setter.Send(SetC("/go", "1") + wire::kPing);
  CHECK(setter.Receive(4) == wire::kPong);
  for (RawClient& waiter : waiters) {
    // The ping's answer follows the single byte directly.
    waiter.Send(wire::kPing);
    REQUIRE(waiter.Receive(5) == kStop + wire::kPong);
  }
}

TEST_CASE("a waiter that is gone is not written to, though its place is taken (conformance 35)") {
  ServerHarness server;
  RawClient setter = server.Join();
  for (int i = 0; i < 50; ++i) {
    const std::string key = "/" + std::to_string(i);
    RawClient waiter = server.Join();
    waiter.Send(Message(wire::kC.wait, List({key})) + Message(wire::kC.wait, List({key})));
    waiter.Close();
    RawClient heir = server.Join();  // Often with the same descriptor and client id.
    setter.Send(SetC(key, "v") + wire::kPing);
    CHECK(setter.Receive(4) == wire::kPong);
    heir.Send(wire::kPing);
    REQUIRE(heir.Receive(4) == wire::kPong);
  }
}

// Every message of dialect C, cut in the middle, on its own connection.
std::deque<RawClient> HalfMessages(ServerHarness& server) {
  std::deque<RawClient> halves;
  for (const std::string& message :
       {SetC("/half", "value"), Message(2, Str("/k") + Str("old") + Str("new")), GetC("/k"),
        AddC("/k", 1), Message(5, List({"/a", "/b"})), Message(6, List({"/a", "/b"})),
        Message(8, Str("/k")), Message(9, Str("/k") + Str("v")), Message(10, List({"/a"})),
        Message(11, U64(1) + Str("/a") + Str("1")), Message(14, Str("/q") + Str("j")),
        Message(15, Str("/q")), Message(16, Str("/q")), Message(18, Str("/b") + I64(2))}) {
    for (std::size_t cut = 1; cut < message.size(); cut += 5) {
      halves.push_back(server.Join());
      halves.back().Send(message.substr(0, cut));
    }
  }
  return halves;
}

TEST_CASE("half a message delays nobody (conformance 42)") {
  ServerHarness server;
  const std::deque<RawClient> halves = HalfMessages(server);
  RawClient client = server.Join();
  std::vector<milliseconds> times;
  for (int i = 1; i <= 101; ++i) {
    const auto start = steady_clock::now();
    client.Send(AddC("/n", 1));
    REQUIRE(client.Receive(8) == I64(i));
    times.push_back(Since(start));
  }
  std::sort(times.begin(), times.end());
  CHECK(times[times.size() / 2] < milliseconds(5));
  CHECK(server.num_keys() == 1);
}

TEST_CASE("claimed lengths cost no memory (conformance 4, 43)") {
  TcpStoreSettings settings;
  settings.parse.max_value = std::size_t{1} << 40U;  // So that a GiB is believed, and waited for.
  settings.parse.max_request = std::size_t{1} << 40U;
  settings.max_store = std::size_t{1} << 40U;
  ServerHarness server(settings);
  RawClient settled = server.Join();
  const std::size_t before = ResidentBytes();
  std::deque<RawClient> liars;
  for (int i = 0; i < 20; ++i) {
    liars.push_back(server.Join());
    liars.back().Send(Message(wire::kC.set, Str("/k") + U64(std::uint64_t{1} << 30U)) + "bytes");
    liars.push_back(server.Join());
    liars.back().Send(Message(wire::kC.check, U64(131072)));
    RawClient absurd = server.Join();
    absurd.Send(Message(wire::kC.set, U64(~std::uint64_t{0})));
    CHECK(absurd.IsClosed());
  }
  settled.Send(wire::kPing);
  CHECK(settled.Receive(4) == wire::kPong);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
  CHECK(ResidentBytes() < before + (std::size_t{1} << 20U));
#else
  CHECK(ResidentBytes() < before + (std::size_t{64} << 20U));  // Sanitizers keep freed memory.
#endif
}

TEST_CASE("131072 keys are answered, one more is refused (conformance 44)") {
  ServerHarness server;
  std::string keys;
  for (int i = 0; i < 131072; ++i) {
    keys += Str("/k" + std::to_string(i));
  }
  RawClient client = server.Join();
  client.Send(Message(wire::kC.check, U64(131072) + keys));
  CHECK(client.Receive(1) == "\x01");
  client.Send(Message(wire::kC.check, U64(131073)));
  CHECK(client.IsClosed());
}

// Adds of 64 clients in lockstep until told to stop; returns how many there were per second.
double AddRate(std::deque<RawClient>& clients, milliseconds time) {
  const auto start = steady_clock::now();
  std::size_t count = 0;
  while (Since(start) < time) {
    for (RawClient& client : clients) {
      client.Send(AddC("/n", 1));
    }
    for (RawClient& client : clients) {
      REQUIRE(client.Receive(8).size() == 8);
      ++count;
    }
  }
  return static_cast<double>(count) /
         std::chrono::duration<double>(steady_clock::now() - start).count();
}

TEST_CASE("a 64 MiB value goes in and out intact") {
  ServerHarness server;
  RawClient client = server.Join();
  std::string value(std::size_t{64} << 20U, '\0');
  std::uint32_t mix = 1;
  for (char& byte : value) {
    mix = mix * 1664525U + 1013904223U;
    byte = static_cast<char>(mix >> 24U);
  }
  client.Send(SetC("/big", value) + GetC("/big"));
  CHECK((client.Receive(value.size() + 8) == Str(value)));  // Too long to be printed.
  client.Send(AddC("/n", 1));
  CHECK(client.Receive(8) == I64(1));
}

TEST_CASE("64 MiB values in flight leave the others their turns (conformance 45)") {
  ServerHarness server;
  std::deque<RawClient> clients;
  for (int i = 0; i < 64; ++i) {
    clients.push_back(server.Join());
  }
  const std::string value(std::size_t{64} << 20U, 'x');
  std::atomic<bool> stop = false;
  const double alone = AddRate(clients, milliseconds(300));
  std::thread mover([&]() {
    RawClient big(server.port());
    big.Send(wire::kHelloC);
    while (!stop) {
      big.Send(SetC("/big", value) + GetC("/big"));
      big.Receive(value.size() + 8);
    }
  });
  const double together = AddRate(clients, milliseconds(600));
  stop = true;
  mover.join();
  // Half the rate is asked for where the mover has a core of its own. On two cores that are shared
  // with other work it has not; what may not be seen anywhere is a server that stalls.
  INFO("adds per second: " << alone << " alone, " << together << " beside large values");
  CHECK(together > alone * 0.1);
}

TEST_CASE("a client that reads nothing is cut at the backlog limit (conformance 46)") {
  TcpStoreSettings settings;
  settings.max_backlog = std::size_t{8} << 20U;
  ServerHarness server(settings);
  RawClient other = server.Join();
  RawClient deaf = server.Join();
  deaf.Send(SetC("/k", std::string(std::size_t{1} << 20U, 'x')));
  for (int i = 0; i < 200; ++i) {
    if (!deaf.Send(GetC("/k"))) {
      break;
    }
  }
  CHECK(server.Logged("of replies are unread, the limit is 8388608"));
  other.Send(AddC("/n", 1));
  CHECK(other.Receive(8) == I64(1));
  CHECK(server.connections() == 1);
}

TEST_CASE("requests under way count against the store's limit") {
  TcpStoreSettings settings;
  settings.max_store = std::size_t{4} << 20U;
  ServerHarness server(settings);
  RawClient other = server.Join();
  RawClient writer = server.Join();
  writer.Send(Message(wire::kC.set, Str("/k") + U64(std::size_t{32} << 20U)));
  writer.Send(std::string(std::size_t{8} << 20U, 'x'));
  CHECK(server.Logged("the store is full"));
  CHECK(server.connections() == 1);
  other.Send(AddC("/n", 1));
  CHECK(other.Receive(8) == I64(1));
}

TEST_CASE("a flood of small requests from one client leaves room for another") {
  ServerHarness server;
  RawClient flood = server.Join();
  RawClient other = server.Join();
  std::string many;
  for (int i = 0; i < 20000; ++i) {
    many += Message(wire::kC.num_keys);
  }
  flood.Send(many + AddC("/f", 1));
  for (int i = 1; i <= 20; ++i) {
    other.Send(AddC("/n", 1));
    REQUIRE(other.Receive(8) == I64(i));
  }
  CHECK(flood.Receive(8 * 20001).size() == 8 * 20001);
}

TEST_CASE("progress is the number of clients that joined") {
  ServerHarness server;
  RawClient first = server.Join();
  first.Send(AddC("init/", 1) + AddC("init/", 1));
  CHECK(first.Receive(16) == I64(1) + I64(2));
  asio::io_context io;
  auto empty = TcpStoreServer::Listen(io, {}, nullptr);
  REQUIRE(empty.has_value());
  CHECK((*empty)->joined_clients() == 0);
}

TEST_CASE("a watcher is told over its own connection") {
  ServerHarness server;
  RawClient watcher(server.port());
  watcher.Send(Message(wire::kA.watch, Str("/wk")));
  CHECK(watcher.Receive(1) == "\x03");
  RawClient setter = server.Join();
  setter.Send(SetC("/wk", "A"));
  const std::string pushed = "\x01" + Str("/wk") + Str("") + Str("A");
  CHECK(watcher.Receive(pushed.size()) == pushed);
}

TEST_CASE("a large value overwritten and deleted while it is sent arrives whole") {
  ServerHarness server;
  RawClient client = server.Join();
  RawClient other = server.Join();
  const std::string value(std::size_t{16} << 20U, 'x');
  client.Send(SetC("/big", value) + GetC("/big"));
  CHECK(client.Receive(8) == U64(value.size()));
  other.Send(Message(wire::kC.append, Str("/big") + Str("tail")) + SetC("/big", "small") +
             Message(wire::kC.remove, Str("/big")));
  CHECK(other.Receive(8) == I64(1));
  CHECK((client.Receive(value.size()) == value));
}

}  // namespace
}  // namespace ddprun
