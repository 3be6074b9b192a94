#pragma once

// What can be said about a failure beyond how the process ended: from its exit status, the end of
// its stderr and the kernel's counters. A handful of rules that need facts of the launcher; texts
// that programs print are the watchdog's signatures, not these. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/memory_facts.h"
#include "agent/core/process_failure.h"

namespace ddprun {

// A port that the launcher knows, and in words who holds it: "this job's store (ddprun, pid 12)".
struct PortOwner {
  std::uint16_t port = 0;
  std::string owner;
};

struct FailureEvidence {
  ProcessFailure failure;         // The root cause.
  std::string stderr_tail;        // The end of its stderr; empty when it was not captured.
  MemoryFacts before;             // From before the workers started,
  MemoryFacts after;              // and from after the failure.
  std::vector<PortOwner> ports;   // MASTER_PORT first.
  std::string local_rank_advice;  // The command that works; used if RejectedLocalRank says so.
};

struct FailureHints {
  std::vector<std::string> facts;  // Sentences without a final stop, most telling first.
  std::vector<std::string> fixes;  // What to do about it, in the imperative.
};

FailureHints HintsFor(const FailureEvidence& evidence);

// The spelling ("--local_rank" or "--local-rank") that the worker's own argument parser refused
// (argparse, click, absl), if it died of that. For whoever writes `local_rank_advice`.
std::optional<std::string> RejectedLocalRank(const ExitStatus& status,
                                             const std::string& stderr_tail);

}  // namespace ddprun
