// The small grammars of option values (endpoint, rdzv-conf, streams and so on), each on the whole
// input.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "launcher/config/rdzv_conf.h"
#include "launcher/config/value_parsers.h"

namespace {

void Check(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void CheckRdzvConf(const std::string& text) {
  for (const auto backend : {ddprun::RdzvBackend::kStatic, ddprun::RdzvBackend::kC10d}) {
    if (const auto conf = ddprun::ParseRdzvConf(text, backend)) {
      Check(conf->configs.join_timeout.count() > 0 && conf->configs.timeout.count() > 0);
      Check(conf->warnings.size() <= conf->configs.raw.size());
    }
  }
}

void CheckRoundTrips(const std::string& text) {
  if (const auto endpoint = ddprun::ParseEndpoint(text, std::uint16_t{7})) {
    Check(!endpoint->host.empty() && endpoint->host.find(' ') == std::string::npos);
  }
  if (const auto selection = ddprun::ParseStreamSelection(text)) {
    Check(*ddprun::ParseStreamSelection(ddprun::FormatStreamSelection(*selection)) == *selection);
  }
  if (const auto range = ddprun::ParseNodeRange(text)) {
    Check(range->min_nodes >= 1 && range->min_nodes <= range->max_nodes);
  }
  if (const auto signals = ddprun::ParseSignals(text)) {
    Check(!signals->signals.empty() || !signals->unknown.empty());
  }
  Check(!ddprun::ParseFilterList(text).empty());
}

template <typename Parsed>
void CheckAnswer(const Parsed& parsed) {
  Check(parsed.has_value() || !parsed.error().message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  CheckRdzvConf(text);
  CheckRoundTrips(text);
  CheckAnswer(ddprun::ParseNprocPerNode(text));
  CheckAnswer(ddprun::ParseLocalRanksFilter(text));
  CheckAnswer(ddprun::ParseStoreConf(text));
  CheckAnswer(ddprun::ParseGpuList(text));
  CheckAnswer(ddprun::ParseLocalRankArg(text));
  CheckAnswer(ddprun::ParseOmpNumThreads(text));
  CheckAnswer(ddprun::ParseStdinRoute(text));
  return 0;
}
