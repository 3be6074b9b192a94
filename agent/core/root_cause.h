#pragma once

// Which of several failures is the cause. Torch takes the smallest timestamp, ties by insertion
// order (errors.ChildFailedError.get_first_failure); that rule stands, with two exceptions where it
// is known to blame a victim. Pure; called by the report, the error record and the restart log.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/core/process_failure.h"

namespace ddprun {

// How far apart two deaths may be to count as cause and consequence: training libraries that kill
// their peers do it within milliseconds of the exception, and a collective notices a lost peer's
// socket as fast; the rest is for slow tracebacks on a loaded machine.
inline constexpr std::int64_t kConsequenceWindowMs = 5000;

struct RootCause {
  std::size_t index = 0;  // Into the failures.

  // Why it is not the one that torch would name.
  enum class Reason {
    kFirst,  // It is: smallest timestamp; ties: not stopped by us, then insertion order.
    kExceptionOverKill,  // The first one died by a SIGKILL that nobody of us sent, while this one
                         // left an exception in its error file just before or after: libraries that
                         // shoot their peers.
    kDeathOverLostPeer,  // The first one's exception only says that a peer was gone; this is the
                         // peer that ended by itself about then.
  };
  Reason reason = Reason::kFirst;
};

// `out_of_memory`: the memory cgroup counted an OOM kill while the workers ran; then a SIGKILL
// explains itself and no exception outranks it. Workers that ended with exit code 0 never count;
// one of the failures at least must have ended otherwise.
RootCause FindRootCause(const std::vector<ProcessFailure>& failures, bool out_of_memory);

// Died by a SIGKILL that we did not send and left no words.
bool KilledByOthers(const ProcessFailure& failure);

// The exception is the echo of another process' end: "Connection closed by peer" and the like.
bool SpeaksOfLostPeer(const ProcessFailure& failure);

}  // namespace ddprun
