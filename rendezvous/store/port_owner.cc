#include "rendezvous/store/port_owner.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace ddprun {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownCommand = 100;
constexpr std::string_view kListenState = "0A";

// One line of /proc/net/tcp: "sl local remote st tx:rx tr:when retrnsmt uid timeout inode ...".
struct SocketLine {
  std::uint16_t port = 0;
  bool listening = false;
  std::string inode;
};

std::optional<SocketLine> ParseSocketLine(const std::string& line) {
  std::istringstream fields(line);
  const std::vector<std::string> words{std::istream_iterator<std::string>(fields), {}};
  constexpr std::size_t kInode = 9;
  if (words.size() <= kInode) {
    return std::nullopt;
  }
  const std::size_t colon = words[1].rfind(':');
  if (colon == std::string::npos) {
    return std::nullopt;
  }
  SocketLine socket;
  const char* const end = words[1].data() + words[1].size();
  const auto parsed = std::from_chars(words[1].data() + colon + 1, end, socket.port, 16);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return std::nullopt;
  }
  socket.listening = words[3] == kListenState;
  socket.inode = words[kInode];
  return socket;
}

// Inodes of the sockets on this local port: the listening ones, else any that a process has open.
std::vector<std::string> InodesOfPort(std::uint16_t port) {
  std::vector<std::string> listening;
  std::vector<std::string> others;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      const std::optional<SocketLine> socket = ParseSocketLine(line);
      if (socket && socket->port == port && socket->inode != "0") {
        (socket->listening ? listening : others).push_back(socket->inode);
      }
    }
  }
  return listening.empty() ? others : listening;
}

bool HoldsAny(const fs::path& process, const std::vector<std::string>& links) {
  std::error_code error;
  fs::directory_iterator entry(process / "fd", fs::directory_options::skip_permission_denied,
                               error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(entry->path(), gone).string();
    if (!gone && std::find(links.begin(), links.end(), target) != links.end()) {
      return true;
    }
  }
  return false;
}

std::string CommandOf(const fs::path& process) {
  std::ifstream file(process / "cmdline", std::ios::binary);
  std::string command{std::istreambuf_iterator<char>(file), {}};
  while (!command.empty() && command.back() == '\0') {
    command.pop_back();
  }
  for (char& c : command) {
    c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  if (command.size() > kShownCommand) {
    command.resize(kShownCommand);
    command += "...";
  }
  return command;
}

}  // namespace

std::string DescribePortOwner(std::uint16_t port) {
  std::vector<std::string> links = InodesOfPort(port);
  if (links.empty()) {
    return "a process that is not visible from here";
  }
  for (std::string& link : links) {
    link = fmt::format("socket:[{}]", link);
  }
  std::error_code error;
  fs::directory_iterator process("/proc", error);
  for (; !error && process != fs::directory_iterator(); process.increment(error)) {
    const std::string name = process->path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos &&
        HoldsAny(process->path(), links)) {
      const std::string command = CommandOf(process->path());
      return fmt::format("pid {} ({})", name, command.empty() ? "command not readable" : command);
    }
  }
  return "another process (owner not readable)";
}

}  // namespace ddprun
