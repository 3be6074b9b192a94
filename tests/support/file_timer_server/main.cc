// file_timer_server PATH: says "ready", kills processes whose timers expire and prints
// "<pid> <signal> <scope>" for each; ends when its standard input does.

#include <signal.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <cstdio>

#include "agent/process/file_timer.h"

namespace {

bool IsAlive(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

void Kill(const ddprun::ExpiredFileTimer& timer) {
  std::printf("%d %d %s\n", static_cast<int>(timer.pid), timer.signal, timer.scope_id.c_str());
  std::fflush(stdout);
  ::kill(timer.pid, timer.signal);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: file_timer_server PATH\n", stderr);
    return 2;
  }
  asio::io_context io;
  auto server = ddprun::FileTimerServer::Start(io, argv[1], {IsAlive, Kill});
  if (!server) {
    std::fprintf(stderr, "file_timer_server: %s\n", server.error().message.c_str());
    return 1;
  }
  asio::posix::stream_descriptor input(io, ::dup(STDIN_FILENO));
  input.async_wait(asio::posix::descriptor_base::wait_read,
                   [&](const asio::error_code&) { (*server)->Stop(); });
  std::puts("ready");
  std::fflush(stdout);
  io.run();
  return 0;
}
