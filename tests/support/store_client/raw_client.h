#pragma once

// A blocking TCP client for tests: sends bytes, receives exactly so many, sees the end of the
// connection. Every wait ends after ten seconds, as a failure.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace ddprun {

class RawClient {
 public:
  static constexpr int kSafetyNetMs = 10000;

  // To a numeric address; IPv4-mapped forms are dialled from an IPv6 socket, as torch does.
  explicit RawClient(std::uint16_t port, const std::string& address = "127.0.0.1") {
    const bool v6 = address.find(':') != std::string::npos;
    fd_ = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    connected_ = v6 ? Dial6(port, address) : Dial4(port, address);
  }
  RawClient(RawClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}
  RawClient& operator=(RawClient&&) = delete;
  ~RawClient() { Close(); }

  bool connected() const { return connected_; }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) {
        return false;
      }
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // Exactly `size` bytes; fewer if the connection ends or nothing comes.
  std::string Receive(std::size_t size) {
    std::string bytes(size, '\0');
    std::size_t have = 0;
    while (have < size && Readable(kSafetyNetMs)) {
      const ssize_t got = ::recv(fd_, bytes.data() + have, size - have, 0);
      if (got <= 0) {
        break;
      }
      have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
    return bytes;
  }

  // The server ended the connection, and sent nothing before.
  bool IsClosed() {
    char byte = 0;
    return Readable(kSafetyNetMs) && ::recv(fd_, &byte, 1, 0) <= 0;
  }

  // Something (or the end) arrives within `milliseconds`.
  bool Readable(int milliseconds) {
    pollfd entry{fd_, POLLIN, 0};
    return ::poll(&entry, 1, milliseconds) == 1;
  }

  void Close() {
    if (fd_ >= 0) {
      ::close(std::exchange(fd_, -1));
    }
  }

  std::uint16_t local_port() const {
    sockaddr_in6 address{};
    socklen_t size = sizeof(address);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin6_port);  // At the same place in both families.
  }

 private:
  bool Dial4(std::uint16_t port, const std::string& text) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, text.c_str(), &address.sin_addr);
    return ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  bool Dial6(std::uint16_t port, const std::string& text) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    ::inet_pton(AF_INET6, text.c_str(), &address.sin6_addr);
    return ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }

  int fd_ = -1;
  bool connected_ = false;
};

}  // namespace ddprun
