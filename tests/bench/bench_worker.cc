// The worker of bench_launch.py: writes moments of CLOCK_MONOTONIC into $DDP_TEST_DIR/stamps, one
// line
// "<event> <seconds> <pid>" each. Static and small, so that its own start costs next to nothing.
//
//   spawn N PROGRAM MODE   forks and execs N workers and waits for them: the floor of every
//   launcher stamp                  ends at once sleep:SECONDS          ends after that time wait
//   waits for SIGTERM and ends restart                waits in the first attempt, ends at once in
//   the next lines:N                writes N lines of 100 bytes

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

int stamps = -1;

void Stamp(const char* event) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  char line[96];
  const int size = snprintf(line, sizeof line, "%s %ld.%09ld %d\n", event,
                            static_cast<long>(now.tv_sec), now.tv_nsec, static_cast<int>(getpid()));
  if (write(stamps, line, static_cast<size_t>(size)) != size) {
    _exit(97);
  }
}

void OnTerm(int) {
  Stamp("term");
  _exit(0);
}

[[noreturn]] void WaitForTerm() {
  alarm(120);  // No worker outlives its benchmark.
  for (;;) {
    pause();
  }
}

int Spawn(int count, char** argv) {
  for (int i = 0; i < count; ++i) {
    if (fork() == 0) {
      execv(argv[0], argv);
      _exit(96);
    }
  }
  while (wait(nullptr) > 0) {
  }
  return 0;
}

int WriteLines(long count) {
  char block[100 * 100];
  memset(block, 'x', sizeof block);
  for (int i = 0; i < 100; ++i) {
    block[i * 100 + 99] = '\n';
  }
  for (long left = count; left > 0; left -= 100) {
    const size_t size = 100 * static_cast<size_t>(left < 100 ? left : 100);
    for (size_t done = 0; done < size;) {
      const ssize_t part = write(1, block + done, size - done);
      if (part <= 0) {
        return 95;
      }
      done += static_cast<size_t>(part);
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "stamp";
  const char* folder = getenv("DDP_TEST_DIR");
  const char* attempt = getenv("TORCHELASTIC_RESTART_COUNT");
  if (strcmp(mode, "spawn") == 0) {
    return argc > 3 ? Spawn(atoi(argv[2]), argv + 3) : 94;
  }
  char path[4096];
  snprintf(path, sizeof path, "%s/stamps", folder != nullptr ? folder : ".");
  stamps = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const bool again = attempt != nullptr && strcmp(attempt, "0") != 0;
  signal(SIGTERM, OnTerm);
  Stamp(again ? "again" : "start");
  if (strncmp(mode, "sleep:", 6) == 0) {
    usleep(static_cast<useconds_t>(atof(mode + 6) * 1e6));
    Stamp("end");
  } else if (strncmp(mode, "lines:", 6) == 0) {
    return WriteLines(atol(mode + 6));
  } else if (strcmp(mode, "wait") == 0 || (strcmp(mode, "restart") == 0 && !again)) {
    WaitForTerm();
  }
  return 0;
}
