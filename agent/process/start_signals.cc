#include "agent/process/start_signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace ddprun {
namespace {

void OpenStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
      // The lowest free number is this one, as those below it are open by now. Inherited by
      // workers.
      ::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
    }
  }
}

}  // namespace

StartSignals StartSignals::Capture() {
  OpenStandardDescriptors();
  StartSignals start;
  ::sigemptyset(&start.ignored_);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) {
      ::sigaddset(&start.ignored_, signal);
    }
  }
  start.ignored_in_workers_ = start.ignored_;
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGCHLD}) {
    ::sigdelset(&start.ignored_in_workers_, signal);
  }
  ::pthread_sigmask(SIG_SETMASK, nullptr, &start.mask_);
  if (start.ignored(SIGCHLD)) {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &action, nullptr);
  }
  return start;
}

}  // namespace ddprun
