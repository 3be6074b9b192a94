#include "agent/core/failure_hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "agent/core/clean_text.h"
#include "agent/core/root_cause.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

constexpr std::size_t kMaxPortsNamed = 3;

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Signals go by name here: their numbers differ between architectures.
bool DiedBy(const ProcessFailure& failure, std::string_view signal) {
  return failure.status.kind == ExitStatus::Kind::kSignaled &&
         SignalName(failure.status.value) == signal;
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// The number as a word of its own: 29500 is not in 129500.
bool HasNumber(std::string_view text, std::string_view number) {
  for (std::size_t at = text.find(number); at != std::string_view::npos;
       at = text.find(number, at + 1)) {
    const std::size_t end = at + number.size();
    if ((at == 0 || !IsDigit(text[at - 1])) && (end == text.size() || !IsDigit(text[end]))) {
      return true;
    }
  }
  return false;
}

// Signals whose default action writes a core file, signal(7).
bool WritesCore(const ExitStatus& status) {
  constexpr std::array<std::string_view, 10> kSignals{"SIGABRT", "SIGBUS",  "SIGFPE", "SIGILL",
                                                      "SIGQUIT", "SIGSEGV", "SIGSYS", "SIGTRAP",
                                                      "SIGXCPU", "SIGXFSZ"};
  return status.kind == ExitStatus::Kind::kSignaled &&
         std::find(kSignals.begin(), kSignals.end(), SignalName(status.value)) != kSignals.end();
}

void AddMemory(const FailureEvidence& evidence, FailureHints& hints) {
  const std::string kills = DescribeOomKills(evidence.before, evidence.after);
  if (!kills.empty()) {
    hints.facts.push_back(kills);
    hints.fixes.emplace_back(
        "give the job more memory, or use less: smaller batches, fewer data loader workers, fewer "
        "ranks per node");
    return;
  }
  if (!KilledByOthers(evidence.failure)) {
    return;
  }
  if (!evidence.before.oom_kills || !evidence.after.oom_kills) {
    hints.facts.push_back(fmt::format(
        "whether the kernel ran out of memory is not known ({}); 'dmesg' on that node tells",
        evidence.after.cgroup_problem.empty() ? "no counter of OOM kills"
                                              : evidence.after.cgroup_problem));
    return;
  }
  hints.facts.emplace_back(
      "the memory cgroup counted no OOM kill meanwhile: a person, the scheduler or another "
      "process sent it");
}

void AddSharedMemory(const FailureEvidence& evidence, const std::string& lower,
                     FailureHints& hints) {
  const bool suspected = DiedBy(evidence.failure, "SIGBUS") || Contains(lower, "bus error") ||
                         Contains(lower, "out of shared memory") ||
                         Contains(lower, "unable to write to file </torch_");
  const std::string use = DescribeSharedMemory(evidence.after);
  if (!suspected || use.empty()) {
    return;
  }
  hints.facts.push_back(fmt::format("shared memory {}", use));
  hints.fixes.emplace_back(
      "if that was full: give the container more ('docker run --shm-size=8g', in Kubernetes a "
      "memory-backed emptyDir there), or use num_workers=0");
}

void AddCore(const FailureEvidence& evidence, FailureHints& hints) {
  const ProcessFailure& failure = evidence.failure;
  if (failure.stopped_by_agent || !WritesCore(failure.status)) {
    return;
  }
  std::string core = DescribeCoreFile(evidence.after, failure.pid, failure.status.core_dumped);
  if (!core.empty()) {
    hints.facts.push_back(std::move(core));
  }
}

std::string LinesAboutBusyAddress(const std::string& lower) {
  std::string lines;
  for (const std::string& line : Split(lower, '\n')) {
    if (Contains(line, "address already in use") || Contains(line, "eaddrinuse")) {
      lines.append(line).append("\n");
    }
  }
  return lines;
}

void AddPorts(const FailureEvidence& evidence, const std::string& lower, FailureHints& hints) {
  const std::string lines = LinesAboutBusyAddress(lower);
  if (lines.empty()) {
    return;
  }
  std::size_t named = 0;
  for (const PortOwner& port : evidence.ports) {
    if (HasNumber(lines, std::to_string(port.port))) {
      hints.facts.push_back(fmt::format("port {} is held by {}", port.port, port.owner));
      ++named;
    }
  }
  // Python's OSError does not say which address it was, so all that are known may be meant.
  for (std::size_t i = 0; named == 0 && i < std::min(kMaxPortsNamed, evidence.ports.size()); ++i) {
    const PortOwner& port = evidence.ports[i];
    hints.facts.push_back(
        fmt::format("if the address was port {}: that is held by {}", port.port, port.owner));
  }
}

void AddLocalRank(const FailureEvidence& evidence, FailureHints& hints) {
  const auto spelling = RejectedLocalRank(evidence.failure.status, evidence.stderr_tail);
  if (!spelling) {
    return;
  }
  hints.facts.push_back(fmt::format("the script's own parser does not know {}", *spelling));
  if (!evidence.local_rank_advice.empty()) {
    hints.fixes.push_back(evidence.local_rank_advice);
  }
}

}  // namespace

std::optional<std::string> RejectedLocalRank(const ExitStatus& status,
                                             const std::string& stderr_tail) {
  if (status.kind != ExitStatus::Kind::kExited || status.value == 0) {
    return std::nullopt;
  }
  for (const std::string& line : Split(LowerCase(stderr_tail), '\n')) {
    if (!Contains(line, "unrecognized arguments") && !Contains(line, "no such option") &&
        !Contains(line, "unknown command line flag")) {
      continue;
    }
    if (Contains(line, "local_rank")) {
      return "--local_rank";
    }
    if (Contains(line, "local-rank")) {
      return "--local-rank";
    }
  }
  return std::nullopt;
}

FailureHints HintsFor(const FailureEvidence& evidence) {
  const std::string lower = LowerCase(evidence.stderr_tail);
  FailureHints hints;
  AddMemory(evidence, hints);
  AddLocalRank(evidence, hints);
  AddPorts(evidence, lower, hints);
  AddSharedMemory(evidence, lower, hints);
  AddCore(evidence, hints);
  return hints;
}

}  // namespace ddprun
