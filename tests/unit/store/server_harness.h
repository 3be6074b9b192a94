#pragma once

// A TcpStoreServer on a thread of its own, so that blocking clients can talk to it.

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rendezvous/store/tcp_store_server.h"
#include "tests/support/catch.h"
#include "tests/support/store_client/raw_client.h"
#include "tests/support/store_client/wire.h"

namespace ddprun {

class ServerHarness {
 public:
  explicit ServerHarness(TcpStoreSettings settings = {}) {
    auto server = TcpStoreServer::Listen(io_, std::move(settings),
                                         [this](std::string line) { AddLine(std::move(line)); });
    INFO((server ? std::string() : server.error().message));
    REQUIRE(server.has_value());
    server_ = std::move(*server);
    thread_ = std::thread([this]() { io_.run(); });
  }
  ~ServerHarness() {
    Run([this]() { server_->Stop(); });
    thread_.join();
  }
  ServerHarness(const ServerHarness&) = delete;
  ServerHarness& operator=(const ServerHarness&) = delete;

  std::uint16_t port() const { return server_->port(); }

  // A client that has said hello and been answered: the server has seen it.
  RawClient Join() {
    RawClient client(port());
    client.Send(wire::kHelloC + wire::kPing);
    CHECK(client.Receive(4) == wire::kPong);
    return client;
  }

  // Runs on the server's thread and waits for it.
  template <typename Function>
  auto Run(Function function) -> decltype(function()) {
    std::packaged_task<decltype(function())()> task(std::move(function));
    auto done = task.get_future();
    asio::post(io_, [&task]() { task(); });
    return done.get();
  }

  std::size_t connections() {
    return Run([this]() { return server_->connections(); });
  }
  std::size_t num_keys() {
    return Run([this]() { return server_->num_keys(); });
  }

  // Waits for a log line that holds this text.
  bool Logged(const std::string& text) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&]() {
      for (const std::string& line : lines_) {
        if (line.find(text) != std::string::npos) {
          return true;
        }
      }
      return false;
    });
  }

 private:
  void AddLine(std::string line) {
    const std::lock_guard<std::mutex> lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.notify_all();
  }

  asio::io_context io_;
  std::unique_ptr<TcpStoreServer> server_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

inline std::size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

}  // namespace ddprun
