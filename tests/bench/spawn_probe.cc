// The worker of bench_spawn, and its shim: as small as a program can be. Linked statically.
//
//   spawn_probe                     writes the monotonic clock at its first instruction to standard
//   output spawn_probe shim PARENT PROG    does what a worker needs before exec, as a program of
//   its own; then exec

#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

int RunShim(char** argv) {
  for (int signal = 1; signal < NSIG; ++signal) {
    ::signal(signal, SIG_DFL);
  }
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != std::atoi(argv[2])) {
    return 1;
  }
  ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execv(argv[3], argv + 3);
  return 127;
}

}  // namespace

int main(int argc, char** argv) {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  if (argc > 3) {
    return RunShim(argv);
  }
  const std::int64_t nanoseconds = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  return ::write(STDOUT_FILENO, &nanoseconds, sizeof nanoseconds) == sizeof nanoseconds ? 0 : 1;
}
