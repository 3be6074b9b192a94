#include "agent/core/root_cause.h"

#include <csignal>

#include "tests/support/catch.h"

namespace ddprun {
namespace {

using Reason = RootCause::Reason;

constexpr std::int64_t kNowMs = 1000000;

ProcessFailure Ended(ExitStatus status, std::int64_t seen_ms) {
  ProcessFailure failure;
  failure.status = status;
  failure.seen_ms = seen_ms;
  failure.timestamp = seen_ms / 1000;
  return failure;
}

ProcessFailure Exit(int code, std::int64_t seen_ms) {
  return Ended({ExitStatus::Kind::kExited, code, false}, seen_ms);
}

ProcessFailure Killed(std::int64_t seen_ms) {
  return Ended({ExitStatus::Kind::kSignaled, SIGKILL, false}, seen_ms);
}

ProcessFailure Raised(const std::string& headline, std::int64_t recorded_ms) {
  ProcessFailure failure = Exit(1, recorded_ms + 50);
  failure.headline = headline;
  failure.recorded_ms = recorded_ms;
  failure.timestamp = recorded_ms / 1000;
  return failure;
}

ProcessFailure Stopped(ProcessFailure failure) {
  failure.stopped_by_agent = true;
  return failure;
}

void Expect(const std::vector<ProcessFailure>& failures, std::size_t index, Reason reason,
            bool out_of_memory = false) {
  const RootCause root = FindRootCause(failures, out_of_memory);
  CHECK(root.index == index);
  CHECK(root.reason == reason);
}

TEST_CASE("the smallest timestamp is the cause, ties go by order") {
  Expect({Exit(1, 9000), Exit(2, 8000), Exit(3, 8000)}, 1, Reason::kFirst);
  Expect({Exit(1, 8000), Exit(2, 8999)}, 0, Reason::kFirst);
  // One that we stopped is behind one that ended by itself in the same second.
  Expect({Stopped(Exit(1, 8000)), Exit(2, 8500)}, 1, Reason::kFirst);
  Expect({Stopped(Exit(0, 1000)), Exit(2, 8500)}, 1, Reason::kFirst);
}

TEST_CASE("an exception leads over peers that were shot") {
  // Recorded before the kill: also if we were stopping the worker already.
  Expect(
      {Killed(kNowMs + 500), Killed(kNowMs + 500), Stopped(Raised("ValueError: x", kNowMs + 400))},
      2, Reason::kExceptionOverKill);
  // Recorded a moment after it, in the next second.
  Expect({Killed(kNowMs - 1), Raised("ValueError: x", kNowMs + 200)}, 1,
         Reason::kExceptionOverKill);
  // Without finer times the seconds decide.
  ProcessFailure coarse = Raised("ValueError: x", 0);
  coarse.timestamp = kNowMs / 1000 + 1;
  ProcessFailure killed = Killed(kNowMs);
  killed.seen_ms = 0;
  Expect({killed, coarse}, 1, Reason::kExceptionOverKill);
}

TEST_CASE("the window is exact") {
  Expect({Killed(kNowMs), Raised("E", kNowMs + kConsequenceWindowMs)}, 1,
         Reason::kExceptionOverKill);
  Expect({Killed(kNowMs), Raised("E", kNowMs + kConsequenceWindowMs + 1)}, 0, Reason::kFirst);
  // Long before: it is the first by its timestamp anyway.
  Expect({Killed(kNowMs), Raised("E", kNowMs - 60000)}, 1, Reason::kFirst);
}

TEST_CASE("a kill stays the cause when the exception does not explain it") {
  Expect({Killed(kNowMs), Raised("E", kNowMs + 1500)}, 0, Reason::kFirst, true);
  Expect({Killed(kNowMs), Stopped(Raised("SystemError: told to stop", kNowMs + 1500))}, 0,
         Reason::kFirst);
  Expect({Killed(kNowMs), Raised("RuntimeError: Connection closed by peer", kNowMs + 1500)}, 0,
         Reason::kFirst);
  Expect({Killed(kNowMs), Exit(1, kNowMs + 1500)}, 0, Reason::kFirst);
  ProcessFailure ours = Stopped(Killed(kNowMs));
  Expect({ours, Raised("E", kNowMs + 1500)}, 0, Reason::kFirst);
  const ExitStatus term{ExitStatus::Kind::kSignaled, SIGTERM, false};
  Expect({Ended(term, kNowMs), Raised("E", kNowMs + 1500)}, 0, Reason::kFirst);
}

TEST_CASE("an exception about a lost peer yields to the peer that ended by itself") {
  const auto lost = Raised("RuntimeError: [pair.cc:534] Connection closed by peer", kNowMs);
  Expect({lost, Exit(7, kNowMs + 1200)}, 1, Reason::kDeathOverLostPeer);
  Expect({lost, Exit(7, kNowMs + 3000), Exit(8, kNowMs + 1200)}, 2, Reason::kDeathOverLostPeer);
  Expect({lost, Raised("ValueError: x", kNowMs + 1200)}, 1, Reason::kDeathOverLostPeer);
  Expect({lost, Killed(kNowMs + 1200)}, 1, Reason::kDeathOverLostPeer, true);
}

TEST_CASE("an exception about a lost peer stays when nobody else ended by itself in time") {
  const auto lost = Raised("OSError: Broken pipe", kNowMs);
  Expect({lost}, 0, Reason::kFirst);
  Expect({lost, Exit(7, kNowMs + kConsequenceWindowMs + 1)}, 0, Reason::kFirst);
  Expect({lost, Stopped(Exit(7, kNowMs + 1200))}, 0, Reason::kFirst);
  Expect({lost, Stopped(Exit(0, kNowMs + 1200))}, 0, Reason::kFirst);
  Expect({lost, Raised("ncclRemoteError: gone", kNowMs + 1200)}, 0, Reason::kFirst);
}

}  // namespace
}  // namespace ddprun
