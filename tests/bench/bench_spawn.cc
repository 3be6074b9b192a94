// The figures of docs/adr/0001-spawn-with-vfork.md: eight workers spawned one after another in five
// ways, alternating, medians. bench_spawn [ROUNDS [BALLAST_MIB]]: the ballast is touched memory of
// the launcher.
//
// `last` is the time from before the first spawn to the first instruction of the last worker;
// `busy` the time that the launcher itself was held up.

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "agent/process/process_tree.h"
#include "agent/process/spawn_clone.h"
#include "agent/process/spawner.h"
#include "rendezvous/base/random_id.h"

namespace {

using namespace ddprun;

constexpr int kWorkers = 8;
const std::string kProbe = DDPRUN_TEST_BIN "/spawn_probe";

enum class Way { kVfork, kCloneIntoCgroup, kVforkThenJoin, kShim, kFork };
constexpr std::array<Way, 5> kWays = {Way::kVfork, Way::kCloneIntoCgroup, Way::kVforkThenJoin,
                                      Way::kShim, Way::kFork};
constexpr std::array<const char*, 5> kNames = {"Spawn: vfork", "Spawn: clone3 into cgroup",
                                               "vfork, child joins cgroup", "posix_spawn of a shim",
                                               "fork"};

std::int64_t Now() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "bench_spawn: %s\n", why.c_str());
  std::exit(1);
}

// The plan of Spawn without its error report.
struct Plan {
  std::array<const char*, 2> argv = {kProbe.c_str(), nullptr};
  std::array<const char*, 1> environment = {nullptr};
  ChildPlan plan;

  explicit Plan(const UniqueFd& out) {
    plan.candidates = argv.data();
    plan.argv = argv.data();
    plan.environment = environment.data();
    plan.streams = {-1, out.get(), -1};
    plan.parent_death_signal = SIGKILL;
    plan.parent = ::getpid();
  }
};

pid_t SpawnByLibrary(const UniqueFd& out, const UniqueFd* cgroup) {
  SpawnRequest request;
  request.name = "worker";
  request.argv = {kProbe};
  request.out = StandardStream::To(out);
  request.signals = StartSignals::Capture();
  request.cgroup = cgroup;
  Expected<SpawnedProcess> process = Spawn(request);
  return process ? process->pid : (Die(process.error().message), -1);
}

pid_t SpawnThenJoin(const UniqueFd& out, const UniqueFd& cgroup) {
  const UniqueFd procs(::openat(cgroup.get(), "cgroup.procs", O_WRONLY | O_CLOEXEC));
  Plan plan(out);
  plan.plan.cgroup_procs = procs.get();
  return VforkChild(plan.plan);
}

pid_t SpawnByShim(const UniqueFd& out) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, out.get(), STDOUT_FILENO);
  std::string program = kProbe;
  std::string shim = "shim";
  std::string parent = std::to_string(::getpid());
  std::array<char*, 5> argv = {program.data(), shim.data(), parent.data(), program.data(), nullptr};
  std::array<char*, 1> environment = {nullptr};
  pid_t pid = -1;
  if (::posix_spawn(&pid, kProbe.c_str(), &actions, nullptr, argv.data(), environment.data()) !=
      0) {
    Die("posix_spawn failed");
  }
  ::posix_spawn_file_actions_destroy(&actions);
  return pid;
}

pid_t SpawnByFork(const UniqueFd& out) {
  const Plan plan(out);
  const pid_t pid = ::fork();
  if (pid == 0) {
    RunChild(plan.plan);
  }
  return pid;
}

pid_t SpawnOne(Way way, const UniqueFd& out, const UniqueFd* cgroup) {
  switch (way) {
    case Way::kVfork:
      return SpawnByLibrary(out, nullptr);
    case Way::kCloneIntoCgroup:
      return SpawnByLibrary(out, cgroup);
    case Way::kVforkThenJoin:
      return SpawnThenJoin(out, *cgroup);
    case Way::kShim:
      return SpawnByShim(out);
    case Way::kFork:
      break;
  }
  return SpawnByFork(out);
}

struct Figures {
  std::vector<double> last;
  std::vector<double> busy;
};

void Measure(Way way, const UniqueFd* cgroup, Figures& figures) {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    Die("pipe failed");
  }
  const UniqueFd in(ends[0]);
  const UniqueFd out(ends[1]);
  const std::int64_t begin = Now();
  for (int i = 0; i < kWorkers; ++i) {
    if (SpawnOne(way, out, cgroup) < 0) {
      Die("spawn failed");
    }
  }
  const std::int64_t busy = Now() - begin;
  std::int64_t last = 0;
  for (int i = 0; i < kWorkers; ++i) {
    std::int64_t stamp = 0;
    if (::read(in.get(), &stamp, sizeof stamp) != sizeof stamp) {
      Die("a worker said nothing");
    }
    last = std::max(last, stamp - begin);
  }
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
  figures.last.push_back(static_cast<double>(last) / 1e6);
  figures.busy.push_back(static_cast<double>(busy) / 1e6);
}

double Percentile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 50;
  const int ballast_mib = argc > 2 ? std::atoi(argv[2]) : 20;
  const std::vector<char> ballast(static_cast<std::size_t>(ballast_mib) * 1024 * 1024, 'x');
  ProcessTree tree = ProcessTree::Create(RandomSuffix());
  tree.MakeCgroup(nullptr);
  std::array<Figures, kWays.size()> figures;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t way = 0; way < kWays.size(); ++way) {
      const bool needs_cgroup =
          kWays[way] == Way::kCloneIntoCgroup || kWays[way] == Way::kVforkThenJoin;
      if (!needs_cgroup || tree.cgroup() != nullptr) {
        Measure(kWays[way], tree.cgroup(), figures[way]);
      }
    }
    ::usleep(static_cast<useconds_t>(std::rand() %
                                     60'000));  // Past the grace period of cgroup moves, often.
  }
  fmt::print("{} workers, {} rounds, {} MiB touched; milliseconds\n", kWorkers, rounds,
             ballast.size() >> 20);
  fmt::print("{:<28}{:>12}{:>12}{:>12}{:>12}\n", "way", "last p50", "last p95", "busy p50",
             "busy p95");
  for (std::size_t way = 0; way < kWays.size(); ++way) {
    if (figures[way].last.empty()) {
      fmt::print("{:<28} no cgroup here\n", kNames[way]);
      continue;
    }
    fmt::print("{:<28}{:>12.2f}{:>12.2f}{:>12.2f}{:>12.2f}\n", kNames[way],
               Percentile(figures[way].last, 0.5), Percentile(figures[way].last, 0.95),
               Percentile(figures[way].busy, 0.5), Percentile(figures[way].busy, 0.95));
  }
}
