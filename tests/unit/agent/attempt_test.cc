#include "agent/attempt.h"

#include "tests/support/catch.h"

namespace ddprun {
namespace {

std::vector<WorkerSpec> Specs(std::uint32_t count) {
  std::vector<WorkerSpec> specs(count);
  for (std::uint32_t local_rank = 0; local_rank < count; ++local_rank) {
    specs[local_rank].local_rank = local_rank;
    specs[local_rank].global_rank = 10 + local_rank;
  }
  return specs;
}

constexpr ExitStatus kOk{ExitStatus::Kind::kExited, 0, false};
constexpr ExitStatus kCode3{ExitStatus::Kind::kExited, 3, false};
constexpr ExitStatus kTerminated{ExitStatus::Kind::kSignaled, 15, false};

TEST_CASE("failures come in torch's order: by themselves first, then the stopped ones") {
  Attempt attempt(Specs(4));
  attempt.NoteExit(2);
  attempt.NoteStop();
  attempt.NoteExit(3);
  attempt.NoteExit(0);
  attempt.NoteExit(1);
  const std::vector<WorkerOutcome> outcomes{{2, kCode3, false, false},
                                            {3, kOk, true, false},
                                            {0, kTerminated, true, false},
                                            {1, kCode3, false, false}};
  const auto failures = attempt.FailuresOf(outcomes, {100, 101, 102, 103});
  REQUIRE(failures.size() == 3);  // The one that ended with 0 is no failure.
  CHECK(failures[0].local_rank == 1);
  CHECK(failures[1].local_rank == 2);
  CHECK(failures[2].local_rank == 0);
  CHECK(failures[1].global_rank == 12);
  CHECK(failures[1].pid == 102);
  CHECK(failures[2].stopped_by_agent);
}

TEST_CASE("a worker's end is timed from the first stop") {
  Attempt attempt(Specs(2));
  attempt.NoteExit(0);
  attempt.NoteStop();
  attempt.NoteExit(1);
  CHECK(attempt.ended_after_stop(0) < Duration::zero());
  CHECK(attempt.ended_after_stop(1) >= Duration::zero());
}

}  // namespace
}  // namespace ddprun
