// test_store_server [option=value...]: opens a TcpStoreServer, prints "port N" on stdout, serves
// until stdin ends, prints "joined N" and exits 0. Log lines go to stderr. A failure to listen is
// printed there too, exit 1.
//
// Options: port, bind (loopback, wildcard or an address), dialect (auto, 2x, 1x), legacy (2.1),
// max_key, max_value, max_keys, max_request, max_store, max_backlog, nofile (RLIMIT_NOFILE).

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "rendezvous/store/tcp_store_server.h"

namespace ddprun {
namespace {

bool Apply(std::string_view name, const std::string& value, TcpStoreSettings& settings) {
  const auto number = static_cast<std::size_t>(std::strtoull(value.c_str(), nullptr, 10));
  const std::array<std::pair<std::string_view, std::size_t*>, 6> sizes = {{
      {"max_key", &settings.parse.max_key},
      {"max_value", &settings.parse.max_value},
      {"max_keys", &settings.parse.max_keys},
      {"max_request", &settings.parse.max_request},
      {"max_store", &settings.max_store},
      {"max_backlog", &settings.max_backlog},
  }};
  for (const auto& [size_name, target] : sizes) {
    if (name == size_name) {
      *target = number;
      return true;
    }
  }
  if (name == "port") {
    settings.port = static_cast<std::uint16_t>(number);
  } else if (name == "bind") {
    settings.bind = value == "loopback"   ? StoreBind::kLoopback
                    : value == "wildcard" ? StoreBind::kWildcard
                                          : StoreBind::kAddress;
    settings.address = value;
  } else if (name == "dialect") {
    settings.mode = value == "2x"   ? DialectMode::kOnly2x
                    : value == "1x" ? DialectMode::kOnly1x
                                    : DialectMode::kAuto;
  } else if (name == "legacy") {
    settings.legacy_is_2_1 = value == "2.1";
  } else if (name == "nofile") {
    const rlimit limit{number, number};
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
  } else {
    return false;
  }
  return true;
}

bool ReadOptions(int argc, char** argv, TcpStoreSettings& settings) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const std::size_t equals = option.find('=');
    if (equals == std::string_view::npos ||
        !Apply(option.substr(0, equals), std::string(option.substr(equals + 1)), settings)) {
      std::fprintf(stderr, "unknown option %s\n", argv[i]);
      return false;
    }
  }
  return true;
}

// Ends the loop when stdin does.
void WatchStdin(asio::posix::stream_descriptor& input, std::array<char, 64>& buffer,
                asio::io_context& io) {
  input.async_read_some(asio::buffer(buffer), [&](asio::error_code error, std::size_t) {
    if (error) {
      io.stop();
    } else {
      WatchStdin(input, buffer, io);
    }
  });
}

int Serve(TcpStoreSettings settings) {
  asio::io_context io;
  auto server = TcpStoreServer::Listen(io, std::move(settings), [](const std::string& line) {
    std::fprintf(stderr, "%s\n", line.c_str());
  });
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message.c_str());
    return 1;
  }
  asio::posix::stream_descriptor input(io, ::dup(STDIN_FILENO));
  std::array<char, 64> buffer{};
  WatchStdin(input, buffer, io);
  std::printf("port %u\n", unsigned{(*server)->port()});
  std::fflush(stdout);
  io.run();
  std::printf("joined %zu\n", (*server)->joined_clients());
  (*server)->Stop();
  return 0;
}

}  // namespace
}  // namespace ddprun

int main(int argc, char** argv) {
  ddprun::TcpStoreSettings settings;
  return ddprun::ReadOptions(argc, argv, settings) ? ddprun::Serve(std::move(settings)) : 2;
}
