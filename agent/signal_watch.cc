#include "agent/signal_watch.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <utility>

#include "agent/process/process_table.h"
#include "agent/process/unique_fd.h"

namespace ddprun {
namespace {

constexpr std::array kPassedOn{SIGUSR1, SIGUSR2, SIGWINCH};
constexpr std::array kEnding{SIGTERM, SIGINT, SIGHUP, SIGQUIT};

}  // namespace

SignalMeaning MeaningOf(int signal, const std::vector<int>& handled) {
  if (signal == SIGCHLD) {
    return SignalMeaning::kChild;
  }
  if (std::find(handled.begin(), handled.end(), signal) != handled.end()) {
    return SignalMeaning::kEnd;
  }
  if (signal == SIGTSTP) {
    return SignalMeaning::kSuspend;
  }
  return std::find(kPassedOn.begin(), kPassedOn.end(), signal) != kPassedOn.end()
             ? SignalMeaning::kPassOn
             : SignalMeaning::kEndUnhandled;
}

std::vector<int> WatchedSignals(const std::vector<int>& handled) {
  std::vector<int> watched{SIGCHLD, SIGTSTP};
  watched.insert(watched.end(), kPassedOn.begin(), kPassedOn.end());
  watched.insert(watched.end(), kEnding.begin(), kEnding.end());
  watched.insert(watched.end(), handled.begin(), handled.end());
  return watched;
}

struct SignalWatch::Impl {
  Impl(asio::io_context& io, UniqueFd fd, sigset_t mask, Callback on_signal)
      : descriptor(io, fd.Release()), set(mask), callback(std::move(on_signal)) {}

  void Wait() {
    descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                          [this](const asio::error_code& error) {
                            if (error) {
                              return;  // Cancelled: the watch is going away.
                            }
                            ReadAll();
                            Wait();
                          });
  }

  void ReadAll() {
    signalfd_siginfo info{};
    while (::read(descriptor.native_handle(), &info, sizeof(info)) ==
           static_cast<ssize_t>(sizeof(info))) {
      ReceivedSignal received;
      received.number = static_cast<int>(info.ssi_signo);
      received.sender = static_cast<pid_t>(info.ssi_pid);
      // SIGCHLD comes with every death and its sender is known: no look at /proc for that.
      const auto process = received.number == SIGCHLD ? std::nullopt : ReadProcess(received.sender);
      received.sender_name = process ? process->command : std::string();
      callback(received);
    }
  }

  asio::posix::stream_descriptor descriptor;
  sigset_t set;
  Callback callback;
};

SignalWatch::SignalWatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SignalWatch::~SignalWatch() = default;

Expected<std::unique_ptr<SignalWatch>> SignalWatch::Start(asio::io_context& io,
                                                          const std::vector<int>& signals,
                                                          const StartSignals& start,
                                                          Callback callback) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals) {
    if (!start.ignored(signal)) {
      ::sigaddset(&set, signal);
    }
  }
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
    return Fail(error, "block the handled signals");
  }
  UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) {
    const int error = errno;
    return Fail(error, "open a signalfd");
  }
  auto impl = std::make_unique<Impl>(io, std::move(fd), set, std::move(callback));
  impl->Wait();
  return std::unique_ptr<SignalWatch>(new SignalWatch(std::move(impl)));
}

void SignalWatch::RaiseWithDefault(int signal) {
  struct sigaction default_action {};
  default_action.sa_handler = SIG_DFL;
  struct sigaction before {};
  ::sigaction(signal, &default_action, &before);
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, signal);
  ::raise(signal);
  sigset_t mask;
  ::pthread_sigmask(SIG_UNBLOCK, &one, &mask);  // Delivered here.
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::sigaction(signal, &before, nullptr);
}

}  // namespace ddprun
