#pragma once

// The small grammars of option values. Each function takes the text of one value and returns its
// meaning, or one sentence without the option's name: the caller puts in front what was written
// where. Rules: torch 2.15.0, unless a comment says otherwise.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/config/launch_config.h"
#include "rendezvous/base/error.h"

namespace ddprun {

struct NodeRange {
  std::uint32_t min_nodes = 1;
  std::uint32_t max_nodes = 1;
};

// `N` or `MIN:MAX` with 0 < MIN <= MAX.
Expected<NodeRange> ParseNodeRange(std::string_view text);

// An integer or auto, cpu, gpu, xpu. Explains the compressed forms that Slurm's variables have.
Expected<WorkerCountRequest> ParseNprocPerNode(std::string_view text);

// `host[:port]`, `[v6]`, `[v6]:port`; nothing means localhost.
Expected<Endpoint> ParseEndpoint(std::string_view text, std::optional<std::uint16_t> default_port);

// One digit 0 to 3, or pairs `L:V` with a single-digit local rank, separated by commas.
Expected<StreamSelection> ParseStreamSelection(std::string_view text);
std::string FormatStreamSelection(const StreamSelection& selection);

// Comma list of integers; nothing means all.
Expected<std::set<long long>> ParseLocalRanksFilter(std::string_view text);

// Comma list where `,,` is a comma: torch's rule, a placeholder for each pair from the left.
std::vector<std::string> ParseFilterList(std::string_view text);
std::string FormatFilterList(const std::vector<std::string>& filters);

struct KeyValue {
  std::string key;
  std::string value;
};

// `k=v,k=v` as torch's _parse_rendezvous_config: everything trimmed, the first `=` splits.
Expected<std::vector<KeyValue>> ParseKeyValues(std::string_view text);

struct SignalSelection {
  std::vector<int> signals;          // In order, each once.
  std::vector<std::string> unknown;  // Names that no signal has; torch warns and goes on.
};

// Comma list of signal names. A signal that no process can handle is an error.
Expected<SignalSelection> ParseSignals(std::string_view text);

Expected<LocalRankPolicy> ParseLocalRankArg(std::string_view text);
Expected<OmpNumThreads> ParseOmpNumThreads(std::string_view text);
Expected<StdinRoute> ParseStdinRoute(std::string_view text);
Expected<StoreConf> ParseStoreConf(std::string_view text);

// Comma list of indices, `GPU-...` and `MIG-...` names, each once.
Expected<std::vector<std::string>> ParseGpuList(std::string_view text);

}  // namespace ddprun
