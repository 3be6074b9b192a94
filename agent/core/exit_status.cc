#include "agent/core/exit_status.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

namespace ddprun {

std::string SignalName(int signal) {
  if (signal > 0 && signal < NSIG) {
    if (const char* abbreviation = ::sigabbrev_np(signal)) {
      return fmt::format("SIG{}", abbreviation);
    }
    if (signal >= SIGRTMIN && signal <= SIGRTMAX) {
      return fmt::format("SIGRTMIN+{}", signal - SIGRTMIN);
    }
  }
  return fmt::format("SIG{}", signal);
}

std::string Describe(const ExitStatus& status) {
  if (status.kind == ExitStatus::Kind::kExited) {
    return fmt::format("exit code {}", status.value);
  }
  return fmt::format("signal {} ({})", status.value, SignalName(status.value));
}

}  // namespace ddprun
