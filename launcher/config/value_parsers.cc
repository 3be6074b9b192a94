#include "launcher/config/value_parsers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

// More than any machine can run, few enough that tables of them fit in memory.
constexpr long long kMaxLocalWorkers = 65536;

tl::unexpected<Error> Bad(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool AllDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

bool IsAsciiWord(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// What Slurm's variables hold instead of a plain count, and which of them has one.
std::string SlurmHint(std::string_view text) {
  const bool starts_with_digit = !text.empty() && IsDigit(text.front());
  if (starts_with_digit &&
      (text.find("(x") != std::string_view::npos || text.find(',') != std::string_view::npos)) {
    return "; it looks like a Slurm list for several nodes: SLURM_NTASKS_PER_NODE has the plain "
           "count";
  }
  const std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && AllDigits(text.substr(colon + 1))) {
    return "; it looks like a Slurm count with a type: SLURM_GPUS_ON_NODE has the plain count";
  }
  return "";
}

Expected<std::uint32_t> ParseRank(std::string_view text, std::string_view what) {
  const std::optional<long long> number = ParsePythonInt(text);
  if (!number || *number < 0 || *number > std::numeric_limits<std::uint32_t>::max()) {
    return Bad(fmt::format("expected {}", what));
  }
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

Expected<NodeRange> ParseNodeRange(std::string_view text) {
  const std::vector<std::string> parts = Split(text, ':');
  if (parts.size() > 2) {
    return Bad("expected N or MIN:MAX");
  }
  const std::optional<long long> min_nodes = ParsePythonInt(parts.front());
  const std::optional<long long> max_nodes = ParsePythonInt(parts.back());
  if (!min_nodes || !max_nodes) {
    return Bad("expected N or MIN:MAX with whole numbers");
  }
  if (*min_nodes < 1 || *max_nodes < *min_nodes) {
    return Bad("expected 0 < MIN <= MAX");
  }
  if (*max_nodes > std::numeric_limits<std::uint32_t>::max()) {
    return Bad("more nodes than there can be");
  }
  return NodeRange{static_cast<std::uint32_t>(*min_nodes), static_cast<std::uint32_t>(*max_nodes)};
}

Expected<WorkerCountRequest> ParseNprocPerNode(std::string_view text) {
  using Kind = WorkerCountRequest::Kind;
  if (const std::optional<long long> count = ParsePythonInt(text)) {
    if (*count < 1 || *count > kMaxLocalWorkers) {
      return Bad(fmt::format("expected 1 to {} workers", kMaxLocalWorkers));
    }
    return WorkerCountRequest{Kind::kNumber, static_cast<std::uint32_t>(*count)};
  }
  if (text == "auto") {
    return WorkerCountRequest{Kind::kAuto, 0};
  }
  if (text == "cpu") {
    return WorkerCountRequest{Kind::kCpu, 0};
  }
  if (text == "gpu") {
    return WorkerCountRequest{Kind::kGpu, 0};
  }
  if (text == "xpu") {
    return WorkerCountRequest{Kind::kXpu, 0};
  }
  return Bad(fmt::format("expected a whole number, auto, cpu, gpu or xpu{}", SlurmHint(text)));
}

Expected<Endpoint> ParseEndpoint(std::string_view text, std::optional<std::uint16_t> default_port) {
  const std::string_view endpoint = Trim(text);
  Endpoint parsed{endpoint.empty() ? "localhost" : std::string(endpoint), 0};
  const bool bracketed = !endpoint.empty() && endpoint.front() == '[' && endpoint.back() == ']';
  const std::size_t colon = bracketed ? std::string_view::npos : endpoint.rfind(':');
  if (colon != std::string_view::npos) {
    const std::string_view port = endpoint.substr(colon + 1);
    const std::optional<long long> number = ParsePythonInt(port);
    if (!AllDigits(port) || port.size() > 5 || !number || *number > 65535) {
      return Bad("the port must be a whole number from 0 to 65535");
    }
    parsed = {std::string(endpoint.substr(0, colon)), static_cast<std::uint16_t>(*number)};
  } else if (default_port) {
    parsed.port = *default_port;
  } else {
    return Bad("the port is missing; write HOST:PORT");
  }
  std::string& host = parsed.host;
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  // Python's \w takes letters of every script; so a byte of a multi-byte character passes.
  const bool valid = !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return IsAsciiWord(c) || c == '.' || c == ':' || c == '-' || (c & 0x80) != 0;
  });
  if (!valid) {
    return Bad("the host must be a name, an IPv4 address or an IPv6 address in brackets");
  }
  return parsed;
}

Expected<StreamSelection> ParseStreamSelection(std::string_view text) {
  const auto is_value = [](char c) { return c >= '0' && c <= '3'; };
  StreamSelection selection;
  if (text.size() == 1 && is_value(text[0])) {
    selection.everywhere = static_cast<std::uint8_t>(text[0] - '0');
    return selection;
  }
  for (const std::string& pair : Split(text, ',')) {
    if (pair.size() != 3 || !IsDigit(pair[0]) || pair[1] != ':' || !is_value(pair[2])) {
      return Bad(
          "expected 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or pairs such as 0:3,1:1 with "
          "local ranks 0 to 9");
    }
    selection.by_local_rank[static_cast<std::uint32_t>(pair[0] - '0')] =
        static_cast<std::uint8_t>(pair[2] - '0');
  }
  return selection;
}

std::string FormatStreamSelection(const StreamSelection& selection) {
  if (selection.by_local_rank.empty()) {
    return std::to_string(selection.everywhere);
  }
  std::vector<std::string> pairs;
  for (const auto& [rank, bits] : selection.by_local_rank) {
    pairs.push_back(fmt::format("{}:{}", rank, bits));
  }
  return Join(pairs, ",");
}

Expected<std::set<long long>> ParseLocalRanksFilter(std::string_view text) {
  std::set<long long> ranks;
  if (text.empty()) {
    return ranks;
  }
  for (const std::string& piece : Split(text, ',')) {
    const std::optional<long long> rank = ParsePythonInt(piece);
    if (!rank) {
      return Bad("expected local ranks separated by commas, such as 0,1,2");
    }
    ranks.insert(*rank);
  }
  return ranks;
}

std::vector<std::string> ParseFilterList(std::string_view text) {
  std::vector<std::string> items(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      items.back().push_back(text[i]);
    } else if (i + 1 < text.size() && text[i + 1] == ',') {
      items.back().push_back(',');
      ++i;
    } else {
      items.emplace_back();
    }
  }
  return items;
}

std::string FormatFilterList(const std::vector<std::string>& filters) {
  std::string text;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    text += i == 0 ? "" : ",";
    for (const char c : filters[i]) {
      text += c == ',' ? ",," : std::string(1, c);
    }
  }
  return text;
}

Expected<std::vector<KeyValue>> ParseKeyValues(std::string_view text) {
  std::vector<KeyValue> pairs;
  if (Trim(text).empty()) {
    return pairs;
  }
  for (const std::string& piece : Split(Trim(text), ',')) {
    const std::size_t equals = piece.find('=');
    const std::string key(Trim(std::string_view(piece).substr(0, equals)));
    if (key.empty()) {
      return Bad("expected KEY=VALUE,KEY=VALUE,...; a key is empty");
    }
    const std::string value(
        equals == std::string::npos ? "" : Trim(std::string_view(piece).substr(equals + 1)));
    if (value.empty()) {
      return Bad(fmt::format("expected KEY=VALUE,KEY=VALUE,...; '{}' has no value", key));
    }
    pairs.push_back({key, value});
  }
  return pairs;
}

Expected<LocalRankPolicy> ParseLocalRankArg(std::string_view text) {
  if (text == "auto") {
    return LocalRankPolicy{LocalRankPolicy::Mode::kAuto, ""};
  }
  if (text == "never") {
    return LocalRankPolicy{LocalRankPolicy::Mode::kNever, ""};
  }
  if (text == "always") {
    return LocalRankPolicy{LocalRankPolicy::Mode::kAlways, ""};
  }
  for (const std::string_view name : {"local_rank", "local-rank"}) {
    if (text == fmt::format("always:--{}", name) || text == fmt::format("always:{}", name)) {
      return LocalRankPolicy{LocalRankPolicy::Mode::kAlways, fmt::format("--{}", name)};
    }
  }
  return Bad("expected auto, always, always:--local-rank, always:--local_rank or never");
}

Expected<OmpNumThreads> ParseOmpNumThreads(std::string_view text) {
  if (text == "auto") {
    return OmpNumThreads{OmpNumThreads::Kind::kAuto, 1};
  }
  if (text == "torchrun") {
    return OmpNumThreads{OmpNumThreads::Kind::kTorchrun, 1};
  }
  const Expected<std::uint32_t> count = ParseRank(text, "auto, torchrun or a number from 1");
  if (!count || *count == 0) {
    return Bad("expected auto, torchrun or a number from 1");
  }
  return OmpNumThreads{OmpNumThreads::Kind::kCount, *count};
}

Expected<StdinRoute> ParseStdinRoute(std::string_view text) {
  if (text == "all") {
    return StdinRoute{StdinRoute::Kind::kAll, 0};
  }
  if (text == "none") {
    return StdinRoute{StdinRoute::Kind::kNone, 0};
  }
  const Expected<std::uint32_t> rank = ParseRank(text, "a local rank, all or none");
  if (!rank) {
    return tl::unexpected(rank.error());
  }
  return StdinRoute{StdinRoute::Kind::kRank, *rank};
}

Expected<std::vector<std::string>> ParseGpuList(std::string_view text) {
  std::vector<std::string> gpus;
  for (const std::string& piece : Split(text, ',')) {
    const std::string gpu(Trim(piece));
    const bool named = gpu.starts_with("GPU-") || gpu.starts_with("MIG-");
    if (!AllDigits(gpu) && !(named && gpu.size() > 4)) {
      return Bad(
          "expected GPU indices, GPU-... or MIG-... names separated by commas, such as 2,4,7");
    }
    if (std::find(gpus.begin(), gpus.end(), gpu) != gpus.end()) {
      return Bad(fmt::format("'{}' is named twice", gpu));
    }
    gpus.push_back(gpu);
  }
  return gpus;
}

}  // namespace ddprun
