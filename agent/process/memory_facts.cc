#include "agent/process/memory_facts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <vector>

#include "agent/process/unique_fd.h"
#include "rendezvous/base/error.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

constexpr std::size_t kMaxFactFile = std::size_t{1} << 20U;  // mountinfo of a busy host is long.
constexpr std::uint64_t kV1Unlimited = std::uint64_t{1} << 62U;

std::optional<std::string> ReadFact(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd) {
    return std::nullopt;
  }
  std::string text;
  constexpr std::size_t kChunk = 4096;
  while (text.size() < kMaxFactFile) {
    const std::size_t old_size = text.size();
    text.resize(old_size + kChunk);
    const ssize_t count = ::read(fd.get(), text.data() + old_size, kChunk);
    text.resize(old_size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count <= 0) {
      return count == 0 ? std::optional(text) : std::nullopt;
    }
  }
  return text;
}

std::optional<std::uint64_t> ParseCount(std::string_view text) {
  const std::string_view digits = Trim(text);
  std::uint64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = !digits.empty() && result.ptr == digits.data() + digits.size();
  return whole && result.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::uint64_t> ReadCount(const std::string& path) {
  const std::optional<std::string> text = ReadFact(path);
  return text ? ParseCount(*text) : std::nullopt;
}

// The number behind `key` in a file of "key number" lines.
std::optional<std::uint64_t> ReadKeyedCount(const std::string& path, std::string_view key) {
  const std::optional<std::string> text = ReadFact(path);
  for (const std::string& line : Split(text.value_or(""), '\n')) {
    if (line.size() > key.size() && line.compare(0, key.size(), key) == 0 &&
        line[key.size()] == ' ') {
      return ParseCount(std::string_view(line).substr(key.size()));
    }
  }
  return std::nullopt;
}

bool HasWord(std::string_view list, std::string_view word) {
  const std::vector<std::string> words = Split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Our place in the hierarchy that controls memory: v1's if there is one, else v2's.
struct CgroupPlace {
  bool v2 = false;
  std::string path;
};

std::optional<CgroupPlace> FindPlace(const std::string& cgroup_text) {
  std::optional<CgroupPlace> v2;
  for (const std::string& line : Split(cgroup_text, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string_view controllers(line.data() + first + 1, second - first - 1);
    if (HasWord(controllers, "memory")) {
      return CgroupPlace{false, line.substr(second + 1)};
    }
    if (controllers.empty() && line[0] == '0') {
      v2 = CgroupPlace{true, line.substr(second + 1)};
    }
  }
  return v2;
}

// proc(5): blanks, tabs, newlines and backslashes in mountinfo are octal escapes.
std::string DecodeMountPath(std::string_view field) {
  std::string path;
  for (std::size_t i = 0; i < field.size(); ++i) {
    unsigned value = 0;
    constexpr std::size_t kDigits = 3;
    if (field[i] == '\\' && field.size() - i > kDigits) {
      const char* begin = field.data() + i + 1;
      const auto result = std::from_chars(begin, begin + kDigits, value, 8);
      if (result.ec == std::errc() && result.ptr == begin + kDigits && value < 256) {
        path.push_back(static_cast<char>(value));
        i += kDigits;
        continue;
      }
    }
    path.push_back(field[i]);
  }
  return path;
}

struct CgroupMount {
  std::string root;   // The cgroup that is mounted.
  std::string point;  // Where.
};

// One line of mountinfo, if it is the mount of the memory hierarchy that we look for.
std::optional<CgroupMount> ParseMount(const std::string& line, bool v2) {
  constexpr std::size_t kRoot = 3;
  constexpr std::size_t kPoint = 4;
  const std::vector<std::string> fields = Split(line, ' ');
  const auto dash = std::find(fields.begin(), fields.end(), "-");
  if (dash - fields.begin() <= static_cast<std::ptrdiff_t>(kPoint) || fields.end() - dash < 4) {
    return std::nullopt;
  }
  const bool fits = v2 ? dash[1] == "cgroup2" : dash[1] == "cgroup" && HasWord(dash[3], "memory");
  if (!fits) {
    return std::nullopt;
  }
  return CgroupMount{DecodeMountPath(fields[kRoot]), DecodeMountPath(fields[kPoint])};
}

std::optional<CgroupMount> FindMount(const std::string& mountinfo, bool v2) {
  for (const std::string& line : Split(mountinfo, '\n')) {
    if (auto mount = ParseMount(line, v2)) {
      return mount;
    }
  }
  return std::nullopt;
}

// The path of `place` below the mount. In a container the mounted root is often our own cgroup, or
// one that the cgroup namespace hides; then the mount point itself is ours.
std::string BelowMount(const CgroupPlace& place, const CgroupMount& mount) {
  const std::string root = mount.root == "/" ? "" : mount.root;
  const bool inside = place.path.compare(0, root.size(), root) == 0 &&
                      (place.path.size() == root.size() || place.path[root.size()] == '/');
  if (!inside || place.path.find("/..") != std::string::npos) {
    return {};
  }
  std::string below = place.path.substr(root.size());
  while (!below.empty() && below.back() == '/') {
    below.pop_back();
  }
  return below.empty() || below[0] == '/' ? below : std::string();
}

void Tighten(std::optional<std::uint64_t>& limit, std::optional<std::uint64_t> other) {
  if (other && (!limit || *other < *limit)) {
    limit = other;
  }
}

// Version 2: a limit may sit on any cgroup above ours ("max" is no number and so no limit).
void ReadV2(const std::string& point, std::string below, MemoryFacts& facts) {
  const std::string own = point + below;
  facts.oom_kills = ReadKeyedCount(own + "/memory.events", "oom_kill");
  facts.memory_peak = ReadCount(own + "/memory.peak");
  while (true) {
    Tighten(facts.memory_limit, ReadCount(point + below + "/memory.max"));
    if (below.empty()) {
      return;
    }
    below.resize(below.rfind('/'));
  }
}

// Version 1: memory.stat already knows the tightest limit of the hierarchy; kernels before 4.13
// have no counter of kills.
void ReadV1(const std::string& own, MemoryFacts& facts) {
  facts.oom_kills = ReadKeyedCount(own + "/memory.oom_control", "oom_kill");
  facts.memory_peak = ReadCount(own + "/memory.max_usage_in_bytes");
  Tighten(facts.memory_limit, ReadKeyedCount(own + "/memory.stat", "hierarchical_memory_limit"));
  Tighten(facts.memory_limit, ReadCount(own + "/memory.limit_in_bytes"));
  if (facts.memory_limit && *facts.memory_limit >= kV1Unlimited) {
    facts.memory_limit.reset();
  }
}

void ReadCgroup(const MemoryFactPaths& paths, MemoryFacts& facts) {
  const auto cgroup = ReadFact(paths.cgroup);
  const auto mountinfo = ReadFact(paths.mountinfo);
  const auto place = FindPlace(cgroup.value_or(""));
  if (!place || !mountinfo) {
    facts.cgroup_problem = "no memory cgroup";
    return;
  }
  const auto mount = FindMount(*mountinfo, place->v2);
  if (!mount) {
    facts.cgroup_problem = "the memory cgroup is not mounted";
    return;
  }
  const std::string below = BelowMount(*place, *mount);
  if (place->v2) {
    ReadV2(mount->point, below, facts);
  } else {
    ReadV1(mount->point + below, facts);
  }
  if (!facts.oom_kills) {
    facts.cgroup_problem = fmt::format("'{}{}' has no counter of OOM kills", mount->point, below);
  }
}

void ReadSharedMemory(const std::string& path, MemoryFacts& facts) {
  struct statvfs info {};
  facts.shared_memory_path = path;
  if (::statvfs(path.c_str(), &info) != 0) {
    return;
  }
  const std::uint64_t block = info.f_frsize;
  facts.shared_memory =
      SharedMemoryUse{block * info.f_blocks, block * (info.f_blocks - info.f_bfree)};
}

void ReadCore(const MemoryFactPaths& paths, MemoryFacts& facts) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    facts.core_limit = limit.rlim_cur;
  }
  facts.core_pattern = Trim(ReadFact(paths.core_pattern).value_or(""));
  facts.core_uses_pid = ReadCount(paths.core_uses_pid).value_or(0) != 0;
}

}  // namespace

MemoryFacts ReadMemoryFacts(const MemoryFactPaths& paths) {
  MemoryFacts facts;
  ReadCgroup(paths, facts);
  ReadSharedMemory(paths.shared_memory, facts);
  ReadCore(paths, facts);
  return facts;
}

}  // namespace ddprun
