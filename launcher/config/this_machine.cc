#include "launcher/config/this_machine.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <memory>
#include <set>

#include "rendezvous/base/hostname.h"

namespace ddprun {
namespace {

// An address as its raw bytes: 4 for IPv4 (also when it comes mapped into IPv6), 16 for IPv6.
using Address = std::string;

Address Bytes(const void* data, std::size_t size) {
  return {static_cast<const char*>(data), size};
}

Address Unmapped(const in6_addr& address) {
  const Address bytes = Bytes(&address, sizeof(address));
  return IN6_IS_ADDR_V4MAPPED(&address) ? bytes.substr(12) : bytes;
}

// The sockaddr is copied out: its true type need not be aligned for a cast.
Address AddressOf(const sockaddr* socket_address) {
  if (socket_address == nullptr) {
    return {};
  }
  if (socket_address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, socket_address, sizeof(v4));
    return Bytes(&v4.sin_addr, sizeof(v4.sin_addr));
  }
  if (socket_address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, socket_address, sizeof(v6));
    return Unmapped(v6.sin6_addr);
  }
  return {};
}

Address ParseNumeric(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return Bytes(&v4, sizeof(v4));
  }
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 ? Unmapped(v6) : Address{};
}

bool IsLoopback(const Address& address) {
  if (address.size() == 4) {
    return static_cast<unsigned char>(address[0]) == 127;
  }
  return address == Bytes(&in6addr_loopback, sizeof(in6addr_loopback));
}

std::set<Address> InterfaceAddresses() {
  std::set<Address> addresses;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) {
    return addresses;
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (Address address = AddressOf(entry->ifa_addr); !address.empty()) {
      addresses.insert(std::move(address));
    }
  }
  return addresses;
}

bool ResolvesTo(const std::string& host, const std::set<Address>& own) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &first) != 0) {
    return false;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(first, &::freeaddrinfo);
  for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next) {
    const Address address = AddressOf(entry->ai_addr);
    if (IsLoopback(address) || own.count(address) != 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool IsLoopbackHost(const std::string& host) {
  return host == "localhost" || IsLoopback(ParseNumeric(host));
}

bool NamesThisMachine(const std::string& host) {
  if (IsLoopbackHost(host) || host == Hostname()) {
    return true;
  }
  const std::set<Address> own = InterfaceAddresses();
  const Address numeric = ParseNumeric(host);
  return numeric.empty() ? ResolvesTo(host, own) : own.count(numeric) != 0;
}

}  // namespace ddprun
