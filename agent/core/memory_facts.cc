#include "agent/core/memory_facts.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace ddprun {
namespace {

constexpr std::uint64_t kSmallSharedMemory = 64ULL << 20U;

std::string LimitAndPeak(const MemoryFacts& facts) {
  std::string text;
  if (facts.memory_limit) {
    text = fmt::format("limit {}", DescribeBytes(*facts.memory_limit));
  }
  if (facts.memory_peak) {
    text += fmt::format("{}peak {}", text.empty() ? "" : ", ", DescribeBytes(*facts.memory_peak));
  }
  return text.empty() ? text : fmt::format(" ({})", text);
}

bool HasPidSpecifier(std::string_view pattern) {
  return pattern.find("%p") != std::string_view::npos;
}

// The name by core(5): %p and %% are known here, other specifiers stay as they are.
std::string CoreName(const MemoryFacts& facts, int pid) {
  std::string name;
  const std::string& pattern = facts.core_pattern;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool specifier = pattern[i] == '%' && i + 1 < pattern.size();
    if (specifier && pattern[i + 1] == 'p') {
      name += std::to_string(pid);
      ++i;
    } else if (specifier && pattern[i + 1] == '%') {
      name.push_back('%');
      ++i;
    } else {
      name.push_back(pattern[i]);
    }
  }
  if (facts.core_uses_pid && !HasPidSpecifier(pattern)) {
    name += fmt::format(".{}", pid);
  }
  return name;
}

}  // namespace

std::string DescribeBytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB"};
  constexpr double kStep = 1024.0;
  if (bytes < 1024) {
    return fmt::format("{} B", bytes);
  }
  double value = static_cast<double>(bytes) / kStep;
  std::size_t unit = 0;
  while (value >= kStep && unit + 1 < kUnits.size()) {
    value /= kStep;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::uint64_t OomKillsBetween(const MemoryFacts& before, const MemoryFacts& after) {
  if (!before.oom_kills || !after.oom_kills || *after.oom_kills <= *before.oom_kills) {
    return 0;
  }
  return *after.oom_kills - *before.oom_kills;
}

std::string DescribeOomKills(const MemoryFacts& before, const MemoryFacts& after) {
  const std::uint64_t kills = OomKillsBetween(before, after);
  if (kills == 0) {
    return {};
  }
  return fmt::format("the kernel's OOM killer ended {} {} in this job's memory cgroup{}", kills,
                     kills == 1 ? "process" : "processes", LimitAndPeak(after));
}

std::string DescribeSharedMemory(const MemoryFacts& facts) {
  if (!facts.shared_memory) {
    return {};
  }
  return fmt::format("{}: {} in size, {} in use now", facts.shared_memory_path,
                     DescribeBytes(facts.shared_memory->size),
                     DescribeBytes(facts.shared_memory->used));
}

std::string DescribeCoreFile(const MemoryFacts& facts, int pid, bool core_dumped) {
  const bool piped = !facts.core_pattern.empty() && facts.core_pattern[0] == '|';
  if (piped) {
    return core_dumped ? fmt::format("the core went to the handler '{}' (core_pattern)",
                                     facts.core_pattern.substr(1))
                       : std::string();
  }
  if (!core_dumped) {
    return facts.core_limit == 0U
               ? "no core file: the core limit is 0 ('ulimit -c unlimited' before the start "
                 "enables one)"
               : std::string();
  }
  if (facts.core_pattern.empty()) {
    return "a core file was written";
  }
  const bool absolute = facts.core_pattern[0] == '/';
  return fmt::format("core file: '{}'{}", CoreName(facts, pid),
                     absolute ? "" : " in the worker's working directory");
}

std::string SmallSharedMemoryWarning(const MemoryFacts& facts, std::uint32_t local_world_size) {
  if (local_world_size < 2 || !facts.shared_memory ||
      facts.shared_memory->size > kSmallSharedMemory) {
    return {};
  }
  return fmt::format(
      "{} has only {}: data loader workers may die of a bus error; give the container more "
      "('docker run --shm-size=8g', or a memory-backed volume on it)",
      facts.shared_memory_path, DescribeBytes(facts.shared_memory->size));
}

}  // namespace ddprun
