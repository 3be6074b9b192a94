#include "agent/signal_watch.h"

#include <unistd.h>

#include <asio/io_context.hpp>
#include <csignal>

#include "tests/support/catch.h"

namespace ddprun {
namespace {

TEST_CASE("what a signal means depends on whether it is to be handled") {
  const std::vector<int> usual{SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  CHECK(MeaningOf(SIGTERM, usual) == SignalMeaning::kEnd);
  CHECK(MeaningOf(SIGUSR1, usual) == SignalMeaning::kPassOn);
  CHECK(MeaningOf(SIGWINCH, usual) == SignalMeaning::kPassOn);
  CHECK(MeaningOf(SIGTSTP, usual) == SignalMeaning::kSuspend);
  CHECK(MeaningOf(SIGCHLD, usual) == SignalMeaning::kChild);
  CHECK(MeaningOf(SIGUSR1, {SIGTERM, SIGUSR1}) == SignalMeaning::kEnd);
  CHECK(MeaningOf(SIGINT, {SIGTERM}) == SignalMeaning::kEndUnhandled);
  CHECK(MeaningOf(SIGTSTP, {SIGTSTP}) == SignalMeaning::kEnd);
  CHECK(MeaningOf(SIGCHLD, {SIGCHLD}) == SignalMeaning::kChild);  // Supervision comes first.
}

// Gives the test's thread its mask back.
class MaskGuard {
 public:
  MaskGuard() { ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_); }
  MaskGuard(const MaskGuard&) = delete;
  MaskGuard& operator=(const MaskGuard&) = delete;
  ~MaskGuard() { ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr); }

 private:
  sigset_t mask_{};
};

TEST_CASE("a signal arrives as an event that names its sender") {
  const MaskGuard guard;
  asio::io_context io;
  std::vector<ReceivedSignal> received;
  auto watch =
      SignalWatch::Start(io, {SIGUSR1}, StartSignals::Capture(),
                         [&](const ReceivedSignal& signal) { received.push_back(signal); });
  REQUIRE(watch.has_value());
  ::kill(::getpid(), SIGUSR1);
  io.run_one();
  REQUIRE(received.size() == 1);
  CHECK(received[0].number == SIGUSR1);
  CHECK(received[0].sender == ::getpid());
  CHECK(received[0].sender_name == "unit_agent");
}

TEST_CASE("a signal that was ignored at the start is not watched") {
  const MaskGuard guard;
  ::signal(SIGUSR2, SIG_IGN);
  const StartSignals start = StartSignals::Capture();
  asio::io_context io;
  int count = 0;
  auto watch =
      SignalWatch::Start(io, {SIGUSR1, SIGUSR2}, start, [&](const ReceivedSignal&) { ++count; });
  REQUIRE(watch.has_value());
  ::kill(::getpid(), SIGUSR2);
  ::kill(::getpid(), SIGUSR1);
  io.run_one();
  CHECK(count == 1);
  ::signal(SIGUSR2, SIG_DFL);
}

}  // namespace
}  // namespace ddprun
