#pragma once

// StartSignals: what the launcher was started with, taken before it changes anything, and given
// back to every worker. Under nohup SIGHUP is ignored at start and must stay ignored in the
// launcher and in the workers; the same holds for SIGINT in the background jobs of a shell script
// (POSIX, sh, 2.11).

#include <signal.h>

namespace ddprun {

class StartSignals {
 public:
  // First thing in main, on the main thread, before any handler or thread exists. Besides reading,
  // it repairs two legacies of careless parents that would break supervision: an ignored SIGCHLD
  // (the kernel would reap our workers itself) becomes default, and closed descriptors 0-2 are
  // opened on /dev/null, so that no pipe of ours ever gets one of these numbers.
  static StartSignals Capture();

  // Whether the signal was ignored at start. main leaves such a signal alone: no handler for it.
  bool ignored(int signal) const { return ::sigismember(&ignored_, signal) == 1; }

  // What a worker keeps ignoring: as above, but never SIGPIPE and SIGXFSZ, which Python's
  // subprocess (restore_signals=True) sets back to default for the workers of torchrun too, nor
  // SIGCHLD.
  const sigset_t& ignored_in_workers() const { return ignored_in_workers_; }

  // The signal mask of the main thread at start, restored in every worker.
  const sigset_t& mask() const { return mask_; }

 private:
  sigset_t ignored_{};
  sigset_t ignored_in_workers_{};
  sigset_t mask_{};
};

}  // namespace ddprun
