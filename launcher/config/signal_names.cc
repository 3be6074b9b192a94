#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>
#include <string_view>

#include "launcher/config/value_parsers.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

struct SignalName {
  std::string_view name;
  int number;
};

// The names of Python's signal module on Linux, since torch looks them up there.
constexpr std::array<SignalName, 34> kSignals = {{
    {"SIGABRT", SIGABRT}, {"SIGALRM", SIGALRM}, {"SIGBUS", SIGBUS},       {"SIGCHLD", SIGCHLD},
    {"SIGCLD", SIGCHLD},  {"SIGCONT", SIGCONT}, {"SIGFPE", SIGFPE},       {"SIGHUP", SIGHUP},
    {"SIGILL", SIGILL},   {"SIGINT", SIGINT},   {"SIGIO", SIGIO},         {"SIGIOT", SIGABRT},
    {"SIGKILL", SIGKILL}, {"SIGPIPE", SIGPIPE}, {"SIGPOLL", SIGIO},       {"SIGPROF", SIGPROF},
    {"SIGPWR", SIGPWR},   {"SIGQUIT", SIGQUIT}, {"SIGSEGV", SIGSEGV},     {"SIGSTKFLT", SIGSTKFLT},
    {"SIGSTOP", SIGSTOP}, {"SIGSYS", SIGSYS},   {"SIGTERM", SIGTERM},     {"SIGTRAP", SIGTRAP},
    {"SIGTSTP", SIGTSTP}, {"SIGTTIN", SIGTTIN}, {"SIGTTOU", SIGTTOU},     {"SIGURG", SIGURG},
    {"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2}, {"SIGVTALRM", SIGVTALRM}, {"SIGWINCH", SIGWINCH},
    {"SIGXCPU", SIGXCPU}, {"SIGXFSZ", SIGXFSZ},
}};

std::optional<int> NumberOf(std::string_view name) {
  if (name == "SIGRTMIN") {
    return SIGRTMIN;  // Not a constant: glibc keeps the first ones for itself.
  }
  if (name == "SIGRTMAX") {
    return SIGRTMAX;
  }
  for (const SignalName& signal : kSignals) {
    if (signal.name == name) {
      return signal.number;
    }
  }
  return std::nullopt;
}

}  // namespace

Expected<SignalSelection> ParseSignals(std::string_view text) {
  SignalSelection selection;
  for (const std::string& piece : Split(text, ',')) {
    const std::string name(Trim(piece));
    const std::optional<int> number = NumberOf(name);
    if (!number) {
      selection.unknown.push_back(name);
      continue;
    }
    if (*number == SIGKILL || *number == SIGSTOP) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} cannot be handled by any process; remove it", name));
    }
    if (std::find(selection.signals.begin(), selection.signals.end(), *number) ==
        selection.signals.end()) {
      selection.signals.push_back(*number);
    }
  }
  return selection;
}

}  // namespace ddprun
