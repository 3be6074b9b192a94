// test_store_load PORT OPERATION CLIENTS COUNT
//
// Opens CLIENTS connections of dialect C to 127.0.0.1:PORT and lets each of them do COUNT
// operations, in lockstep: all send, then all receive, so that the server always finds several of
// them ready, as with real workers. Prints the seconds that took, connecting excluded.
//
// OPERATION is set, add, get (as torch does it: WAIT, then GET) or barrier: all connect, each adds
// one to a key, the last sets another, all wait for it; connecting is included there, COUNT
// ignored.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <string_view>

#include "tests/support/store_client/raw_client.h"
#include "tests/support/store_client/wire.h"

namespace ddprun {
namespace {

using Clients = std::deque<RawClient>;

struct Exchange {
  std::string request;
  std::size_t reply_size;
};

const std::string kValue(16, 'v');

std::string Key(std::size_t client) {
  return std::string("/bench/rank_").append(std::to_string(client));
}

[[noreturn]] void GiveUp(const char* what) {
  std::fprintf(stderr, "store load: %s\n", what);
  std::exit(1);
}

void Connect(std::uint16_t port, std::size_t count, Clients& clients) {
  for (std::size_t i = 0; i < count; ++i) {
    clients.emplace_back(port);
    if (!clients.back().connected() || !clients.back().Send(wire::kHelloC + wire::kPing)) {
      GiveUp("cannot connect");
    }
  }
  for (RawClient& client : clients) {
    if (client.Receive(wire::kPong.size()) != wire::kPong) {
      GiveUp("no answer to the ping");
    }
  }
}

// What client i sends for one operation, and how long the answers are.
std::deque<Exchange> ExchangesOf(std::string_view operation, std::size_t client) {
  const std::string key = wire::Str(Key(client));
  if (operation == "set") {
    return {{wire::Message(wire::kC.set, key + wire::Str(kValue)), 0}};
  }
  if (operation == "add") {
    return {{wire::Message(wire::kC.add, wire::Str("/bench/counter") + wire::I64(1)), 8}};
  }
  if (operation == "get") {
    return {{wire::Message(wire::kC.wait, wire::U64(1) + key), 1},
            {wire::Message(wire::kC.get, key), 8 + kValue.size()}};
  }
  GiveUp("unknown operation");
}

void Ping(Clients& clients) {
  for (RawClient& client : clients) {
    client.Send(wire::kPing);
    if (client.Receive(wire::kPong.size()) != wire::kPong) {
      GiveUp("no answer to the last ping");
    }
  }
}

void Load(Clients& clients, std::string_view operation, int count) {
  std::deque<std::deque<Exchange>> exchanges;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    exchanges.push_back(ExchangesOf(operation, i));
  }
  for (int round = 0; round < count; ++round) {
    for (std::size_t step = 0; step < exchanges.front().size(); ++step) {
      for (std::size_t i = 0; i < clients.size(); ++i) {
        clients[i].Send(exchanges[i][step].request);
      }
      for (std::size_t i = 0; i < clients.size(); ++i) {
        const std::size_t size = exchanges[i][step].reply_size;
        if (size > 0 && clients[i].Receive(size).size() != size) {
          GiveUp("the server closed a connection");
        }
      }
    }
  }
  Ping(clients);
}

void Barrier(std::uint16_t port, std::size_t count, const std::string& name) {
  Clients clients;
  Connect(port, count, clients);
  const std::string add = wire::Message(wire::kC.add, wire::Str(name + "/count") + wire::I64(1));
  const std::string wait = wire::Message(wire::kC.wait, wire::U64(1) + wire::Str(name + "/last"));
  for (RawClient& client : clients) {
    client.Send(add);
  }
  for (RawClient& client : clients) {
    if (client.Receive(8).size() != 8) {
      GiveUp("no answer to an add");
    }
    client.Send(wait);
  }
  clients.back().Send(wire::Message(wire::kC.cancel));
  clients.back().Receive(1);
  clients.back().Send(wire::Message(wire::kC.set, wire::Str(name + "/last") + wire::Str("1")) +
                      wait);
  for (RawClient& client : clients) {
    if (client.Receive(1).size() != 1) {
      GiveUp("the barrier did not open");
    }
  }
}

int Main(int argc, char** argv) {
  if (argc != 5) {
    GiveUp("usage: test_store_load PORT set|get|add|barrier CLIENTS COUNT");
  }
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[1]));
  const std::string_view operation = argv[2];
  const auto count = static_cast<std::size_t>(std::atoi(argv[3]));
  Clients clients;
  if (operation != "barrier") {
    Connect(port, count, clients);
    for (std::size_t i = 0; i < count; ++i) {
      clients[i].Send(wire::Message(wire::kC.set, wire::Str(Key(i)) + wire::Str(kValue)));
    }
    Ping(clients);
  }
  // The caller reads the server's processor time now, and starts the load.
  std::printf("ready\n");
  std::fflush(stdout);
  if (std::getchar() == EOF) {
    return 1;
  }
  const auto start = std::chrono::steady_clock::now();
  if (operation == "barrier") {
    Barrier(port, count, std::string("/barrier/").append(argv[4]));
  } else {
    Load(clients, operation, std::atoi(argv[4]));
  }
  std::printf("%.6f\n",
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  std::fflush(stdout);
  std::getchar();  // The connections stay open until the caller has read the time again.
  return 0;
}

}  // namespace
}  // namespace ddprun

int main(int argc, char** argv) {
  return ddprun::Main(argc, argv);
}
