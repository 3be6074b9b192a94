#include "agent/core/root_cause.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <tuple>

#include "agent/core/clean_text.h"
#include "rendezvous/base/check.h"

namespace ddprun {
namespace {

constexpr std::int64_t kMsPerSecond = 1000;

bool Earlier(const ProcessFailure& a, const ProcessFailure& b) {
  return std::tie(a.timestamp, a.stopped_by_agent) < std::tie(b.timestamp, b.stopped_by_agent);
}

std::int64_t SeenMs(const ProcessFailure& failure) {
  return failure.seen_ms != 0 ? failure.seen_ms : failure.timestamp * kMsPerSecond;
}

std::int64_t RecordedMs(const ProcessFailure& failure) {
  return failure.recorded_ms != 0 ? failure.recorded_ms : failure.timestamp * kMsPerSecond;
}

// A worker that we were already stopping may raise because of that, so its record counts only if it
// was there before the kill; one that ended by itself may also have written it just after.
bool ExplainsKill(const ProcessFailure& raised, const ProcessFailure& killed) {
  if (!raised.has_record() || SpeaksOfLostPeer(raised)) {
    return false;
  }
  const std::int64_t lead = SeenMs(killed) - RecordedMs(raised);
  const std::int64_t latest = raised.stopped_by_agent ? 0 : -kConsequenceWindowMs;
  return lead <= kConsequenceWindowMs && lead >= latest;
}

// Something that ended by itself near the moment when the other one lost its peer.
bool ExplainsLostPeer(const ProcessFailure& ended, const ProcessFailure& complained) {
  const std::int64_t distance = std::abs(SeenMs(ended) - RecordedMs(complained));
  return !ended.stopped_by_agent && !SpeaksOfLostPeer(ended) && distance <= kConsequenceWindowMs;
}

// The earliest of those that `fits`; equals keep their order.
template <typename Fits>
std::optional<std::size_t> EarliestThat(const std::vector<ProcessFailure>& failures, Fits fits) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (!failures[i].status.success() && fits(failures[i]) &&
        (!best || Earlier(failures[i], failures[*best]))) {
      best = i;
    }
  }
  return best;
}

}  // namespace

bool KilledByOthers(const ProcessFailure& failure) {
  return failure.status.kind == ExitStatus::Kind::kSignaled &&
         SignalName(failure.status.value) == "SIGKILL" && !failure.stopped_by_agent &&
         !failure.has_record();
}

bool SpeaksOfLostPeer(const ProcessFailure& failure) {
  constexpr std::array<std::string_view, 6> kPhrases{"closed by peer",  "reset by peer",
                                                     "broken pipe",     "remote process exited",
                                                     "ncclremoteerror", "socket is not connected"};
  const std::string headline = LowerCase(failure.headline);
  return std::any_of(kPhrases.begin(), kPhrases.end(), [&headline](std::string_view phrase) {
    return headline.find(phrase) != std::string::npos;
  });
}

RootCause FindRootCause(const std::vector<ProcessFailure>& failures, bool out_of_memory) {
  const auto first_index = EarliestThat(failures, [](const ProcessFailure&) { return true; });
  DDP_CHECK(first_index.has_value());
  const ProcessFailure& first = failures[*first_index];
  if (KilledByOthers(first) && !out_of_memory) {
    const auto raised = EarliestThat(
        failures, [&first](const ProcessFailure& other) { return ExplainsKill(other, first); });
    if (raised) {
      return {*raised, RootCause::Reason::kExceptionOverKill};
    }
  }
  if (SpeaksOfLostPeer(first)) {
    const auto ended = EarliestThat(
        failures, [&first](const ProcessFailure& other) { return ExplainsLostPeer(other, first); });
    if (ended) {
      return {*ended, RootCause::Reason::kDeathOverLostPeer};
    }
  }
  return {*first_index, RootCause::Reason::kFirst};
}

}  // namespace ddprun
