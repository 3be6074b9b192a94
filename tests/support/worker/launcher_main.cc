// A launcher for tests, to be killed at a named phase: launcher PHASE cgroup|plain FOLDER WORKER
// STEPS... It prints "phase" when it is there, and sleeps.
//
//   idle      tree and guardian, nothing else
//   paths     and it owns FOLDER/fifo, FOLDER/tree (a folder with content) and FOLDER/unmade
//   spawned   and two workers run, which the guardian has not been told of
//   watched   and it has been told
//   stopping  and, when SIGUSR1 has come, the workers have been sent SIGTERM
//   orderly   everything is killed, goodbye is said; exits 0 and leaves the paths
//   abort, exit   as `watched`, then it crashes, or exits without goodbye

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "agent/process/guardian.h"
#include "agent/process/process_tree.h"
#include "agent/process/spawner.h"
#include "rendezvous/base/random_id.h"

namespace {

using namespace ddprun;

[[noreturn]] void Arrive() {
  std::puts("phase");
  std::fflush(stdout);
  for (;;) {
    ::pause();
  }
}

template <typename T>
T Need(Expected<T> value) {
  if (!value) {
    std::fprintf(stderr, "%s\n", value.error().message.c_str());
    std::abort();
  }
  if constexpr (!std::is_void_v<T>) {
    return std::move(*value);
  }
}

void MakePaths(Guardian& guardian, const std::string& folder) {
  Need(guardian.OwnPath(folder + "/unmade", false));
  Need(guardian.OwnPath(folder + "/fifo", false));
  ::mkfifo((folder + "/fifo").c_str(), 0600);
  Need(guardian.OwnPath(folder + "/tree", true));
  ::mkdir((folder + "/tree").c_str(), 0700);
  ::mkdir((folder + "/tree/inner").c_str(), 0700);
  std::fclose(std::fopen((folder + "/tree/inner/file").c_str(), "w"));
}

std::vector<SpawnedProcess> SpawnTwo(ProcessTree& tree, const StartSignals& signals, char** argv) {
  std::vector<SpawnedProcess> workers;
  for (int i = 0; i < 2; ++i) {
    SpawnRequest request;
    request.name = "worker " + std::to_string(i);
    for (char** word = argv; *word != nullptr; ++word) {
      request.argv.emplace_back(*word);
    }
    request.environment = {tree.marker().assignment()};
    request.signals = signals;
    request.cgroup = tree.cgroup();
    workers.push_back(Need(Spawn(request)));
    tree.AddWorker(workers.back().pid);
  }
  return workers;
}

}  // namespace

int main(int argc, char** argv) {
  const StartSignals signals = StartSignals::Capture();
  if (argc < 5) {
    return 2;
  }
  sigset_t go_on;
  ::sigemptyset(&go_on);
  ::sigaddset(&go_on, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &go_on, nullptr);
  const std::string phase = argv[1];
  const std::string folder = argv[3];
  ProcessTree tree = ProcessTree::Create(RandomSuffix());
  Guardian guardian = Need(Guardian::Start(tree.marker()));
  tree.AddHelper(guardian.pid());
  if (std::string(argv[2]) == "cgroup") {
    tree.MakeCgroup(&guardian);
  }
  if (!tree.cgroup_path().empty()) {
    std::printf("cgroup %s\n", tree.cgroup_path().c_str());
    std::fflush(stdout);
  }
  if (phase == "idle") {
    Arrive();
  }
  MakePaths(guardian, folder);
  if (phase == "paths") {
    Arrive();
  }
  std::vector<SpawnedProcess> workers = SpawnTwo(tree, signals, argv + 4);
  if (phase == "spawned") {
    Arrive();
  }
  for (const SpawnedProcess& worker : workers) {
    Need(guardian.WatchWorker(worker.pid));
  }
  if (phase == "abort") {
    std::abort();
  }
  if (phase == "exit") {
    return 0;
  }
  if (phase == "stopping") {
    ::sigwaitinfo(&go_on, nullptr);
    tree.SignalTree(SIGTERM);
  }
  if (phase == "orderly") {
    const bool clean = tree.KillAll(std::chrono::seconds(10)).empty();
    for (SpawnedProcess& worker : workers) {
      Need(worker.pidfd.Wait());
    }
    guardian.Goodbye();
    return clean ? 0 : 1;
  }
  Arrive();
}
