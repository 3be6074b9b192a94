// A worker for tests: does its arguments one after the other, so that a test can say in one line
// what kind of awkward process it needs.
//
//   ready        write "ready <pid>" to standard output
//   ignore       ignore SIGTERM, SIGINT and SIGHUP
//   setsid       make an own session
//   fork         the child goes on with what follows; the parent sleeps for ever
//   fork-exit    the child goes on; the parent exits 0
//   fan N        as fork, with N children
//   clear-env    execute this program again with an empty environment for what follows
//   comet        fork and exit for ever: no pid of it lives long
//   stop         SIGSTOP to itself
//   setuid       become root in every respect; this program must be set-uid for it
//   own-thread   the main thread ends, another one sleeps for ever
//   exit N, kill N, pause

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

[[noreturn]] void Pause() {
  for (;;) {
    ::pause();
  }
}

void SayReady() {
  const std::string line = "ready " + std::to_string(::getpid()) + "\n";
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) {
    ::_exit(9);
  }
}

void Fan(int count) {
  for (int i = 0; i < count; ++i) {
    if (::fork() == 0) {
      return;
    }
  }
  Pause();
}

[[noreturn]] void Comet() {
  for (;;) {
    if (::fork() != 0) {
      ::_exit(0);
    }
  }
}

[[noreturn]] void LeaveMainThread() {
  pthread_t thread = {};
  ::pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        SayReady();
        Pause();
      },
      nullptr);
  ::pthread_exit(nullptr);
}

void DoStep(const std::string& step, char** rest) {
  if (step == "ready") {
    SayReady();
  } else if (step == "ignore") {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
      ::signal(signal, SIG_IGN);
    }
  } else if (step == "setsid") {
    ::setsid();
  } else if (step == "fork") {
    Fan(1);
  } else if (step == "fork-exit") {
    if (::fork() != 0) {
      ::_exit(0);
    }
  } else if (step == "setuid") {
    if (::setuid(0) != 0) {
      ::_exit(6);
    }
  } else if (step == "comet") {
    Comet();
  } else if (step == "stop") {
    ::raise(SIGSTOP);
  } else if (step == "own-thread") {
    LeaveMainThread();
  } else if (step == "clear-env") {
    char* const nothing[] = {nullptr};
    *(rest - 1) = const_cast<char*>("worker");
    ::execve("/proc/self/exe", rest - 1, nothing);
    ::_exit(8);
  } else if (step == "pause") {
    Pause();
  } else {
    std::fprintf(stderr, "unknown step %s\n", step.c_str());
    ::_exit(7);
  }
}

void DoStepWithNumber(const std::string& step, int number) {
  if (step == "fan") {
    Fan(number);
  } else if (step == "exit") {
    ::_exit(number);
  } else {
    ::raise(number);
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string step = argv[i];
    if (step == "fan" || step == "exit" || step == "kill") {
      DoStepWithNumber(step, std::atoi(argv[++i]));
    } else {
      DoStep(step, argv + i + 1);
    }
  }
  return 0;
}
