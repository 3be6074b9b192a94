#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "launcher/config/build_context.h"
#include "launcher/config/rdzv_conf.h"
#include "launcher/config/value_parsers.h"
#include "rendezvous/base/random_id.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

using Id = OptionId;

constexpr std::uint16_t kC10dPort = 29400;

bool IsLoopbackName(const std::string& host) {
  return host == "localhost" || host == "127.0.0.1" || host == "::1" || host == "[::1]";
}

// The integer of an option that was checked to be one while parsing.
long long IntegerOf(const BuildContext& context, OptionId id) {
  return ParsePythonInt(context.Text(id)).value_or(0);
}

// An explicit value of an option that the chosen rendezvous does not read. Loopback and rank 0 are
// what a single node has anyway, so they are not worth a word.
void WarnUnusedMaster(const BuildContext& context, std::string_view why) {
  if (!IsLoopbackName(context.Text(Id::kMasterAddr))) {
    context.WarnUnused(Id::kMasterAddr, "", why);
  }
  context.WarnUnused(Id::kMasterPort, "", why);
  if (IntegerOf(context, Id::kNodeRank) != 0) {
    context.WarnUnused(Id::kNodeRank, "", why);
  }
}

// `--standalone` on the command line beats a PET_NNODES that an operator set for other starts.
void DropForeignNnodes(BuildContext& context) {
  const RawValue& nnodes = context.values[Id::kNnodes];
  const bool flag = context.values[Id::kStandalone].source == ValueSource::kFlag;
  if (!flag ||
      (nnodes.source != ValueSource::kVariable && nnodes.source != ValueSource::kConfigFile)) {
    return;
  }
  const Expected<NodeRange> range = ParseNodeRange(nnodes.text);
  if (range && range->max_nodes > 1) {
    context.Warn(Id::kNnodes, "not used, --standalone runs on one node");
    context.values.Derive(Id::kNnodes, "1:1", "--standalone");
  }
}

void MakeStandalone(BuildContext& context, bool implicit) {
  context.config.standalone = true;
  context.config.implicit_standalone = implicit;
  const std::string_view why =
      implicit ? "not used, one node without --master-port and --rdzv-endpoint runs standalone"
               : "not used, --standalone makes its own rendezvous";
  context.WarnUnused(Id::kRdzvBackend, "c10d", why);
  context.WarnUnused(Id::kRdzvEndpoint, "localhost:0", why);
  context.WarnUnused(Id::kRdzvId, "", why);
  WarnUnusedMaster(context, why);
  const std::string origin = implicit ? "one node, no port given" : "--standalone";
  context.values.Derive(Id::kRdzvBackend, "c10d", origin);
  context.values.Derive(Id::kRdzvEndpoint, "localhost:0", origin);
  context.values.Derive(Id::kRdzvId, RandomUuid4(), origin);
}

// torch makes a random number of it, a different one on every node.
void ReplaceEmptyRunId(BuildContext& context) {
  if (!context.Text(Id::kRdzvId).empty()) {
    return;
  }
  std::uint64_t number = 0;
  for (const char c : RandomUuid4().substr(0, 8)) {
    const bool digit = c >= '0' && c <= '9';
    number = number * 16 + static_cast<std::uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  const std::string id = std::to_string(number);
  context.Warn(Id::kRdzvId, fmt::format("an empty id, using the random {}", id));
  context.values.Derive(Id::kRdzvId, id, "random");
}

Expected<void> BuildRunId(BuildContext& context) {
  ReplaceEmptyRunId(context);
  const std::string& id = context.Text(Id::kRdzvId);
  const bool makes_folder = context.Text(Id::kLogDir) != "/dev/null";
  if (makes_folder && id.find('/') != std::string::npos) {
    return context.Bad(Id::kRdzvId, "it becomes the name of a folder, so it cannot hold a '/'");
  }
  context.config.run_id = id;
  return {};
}

// Known back ends; etcd's are recognised here and refused in CheckPartOfThisVersion.
bool IsEtcd(const std::string& backend) {
  return backend == "etcd" || backend == "etcd-v2";
}

Expected<void> BuildBackend(BuildContext& context) {
  const std::string& backend = context.Text(Id::kRdzvBackend);
  if (backend != "static" && backend != "c10d" && !IsEtcd(backend)) {
    return context.Bad(
        Id::kRdzvBackend,
        "no such back end; expected static or c10d (Python plug-ins cannot be used)");
  }
  context.config.rdzv_backend = backend == "static" ? RdzvBackend::kStatic : RdzvBackend::kC10d;
  return {};
}

Expected<bool> BuildConf(BuildContext& context) {
  Expected<RdzvConf> conf = ParseRdzvConf(context.Text(Id::kRdzvConf), context.config.rdzv_backend);
  if (!conf) {
    return context.Bad(Id::kRdzvConf, conf.error().message);
  }
  for (const std::string& warning : conf->warnings) {
    context.Warn(Id::kRdzvConf, warning);
  }
  context.config.rdzv_configs = std::move(conf->configs);
  return conf->file_store;
}

Expected<void> BuildMasterFromEndpoint(BuildContext& context) {
  LaunchConfig& config = context.config;
  if (Expected<void> read =
          context.Read(Id::kRdzvEndpoint, config.rdzv_endpoint,
                       [](const std::string& text) { return ParseEndpoint(text, std::nullopt); });
      !read) {
    return read;
  }
  constexpr std::string_view kWhy = "not used, --rdzv-endpoint wins";
  context.WarnUnused(Id::kMasterAddr, config.rdzv_endpoint.host, kWhy);
  context.WarnUnused(Id::kMasterPort, std::to_string(config.rdzv_endpoint.port), kWhy);
  return {};
}

Expected<void> BuildMaster(BuildContext& context) {
  const std::string& address = context.Text(Id::kMasterAddr);
  const long long port = IntegerOf(context, Id::kMasterPort);
  if (port < 0 || port > std::numeric_limits<std::uint16_t>::max()) {
    return context.Bad(Id::kMasterPort, "expected a port from 0 to 65535");
  }
  Expected<Endpoint> endpoint = ParseEndpoint(fmt::format("{}:{}", address, port), std::nullopt);
  if (!endpoint) {
    return context.Bad(Id::kMasterAddr, endpoint.error().message);
  }
  context.config.rdzv_endpoint = *std::move(endpoint);
  return {};
}

Expected<void> BuildStatic(BuildContext& context) {
  LaunchConfig& config = context.config;
  const bool by_endpoint = !context.Text(Id::kRdzvEndpoint).empty();
  if (Expected<void> built = by_endpoint ? BuildMasterFromEndpoint(context) : BuildMaster(context);
      !built) {
    return built;
  }
  config.master_addr = config.rdzv_endpoint.host;
  config.master_port = config.rdzv_endpoint.port;
  const long long rank = IntegerOf(context, Id::kNodeRank);
  if (rank < 0 || rank >= static_cast<long long>(config.max_nodes)) {
    return context.Bad(Id::kNodeRank, fmt::format("expected a rank from 0 to {}, since --nnodes={}",
                                                  config.max_nodes - 1, config.max_nodes));
  }
  config.node_rank = static_cast<std::uint32_t>(rank);
  return {};
}

Expected<void> BuildDynamic(BuildContext& context, bool file_store) {
  LaunchConfig& config = context.config;
  if (!config.standalone) {
    const bool c10d = context.Text(Id::kRdzvBackend) == "c10d";
    WarnUnusedMaster(context, c10d ? "not used by the back end c10d" : "not used by this back end");
  }
  if (file_store) {
    return {};  // The endpoint is a path; CheckPartOfThisVersion refuses it.
  }
  return context.Read(Id::kRdzvEndpoint, config.rdzv_endpoint,
                      [](const std::string& text) { return ParseEndpoint(text, kC10dPort); });
}

}  // namespace

Expected<void> DecideStandalone(BuildContext& context) {
  if (context.values.IsOn(Id::kStandalone)) {
    DropForeignNnodes(context);
    MakeStandalone(context, /*implicit=*/false);
    return {};
  }
  const bool candidate = context.Text(Id::kRdzvBackend) == "static" &&
                         context.Text(Id::kRdzvEndpoint).empty() &&
                         !context.values.IsExplicit(Id::kMasterPort);
  if (!candidate) {
    return {};
  }
  NodeRange range;
  if (Expected<void> read = context.Read(Id::kNnodes, range, ParseNodeRange); !read) {
    return read;
  }
  if (range.max_nodes == 1) {
    MakeStandalone(context, /*implicit=*/true);
  }
  return {};
}

Expected<void> BuildNodes(BuildContext& context) {
  LaunchConfig& config = context.config;
  NodeRange range;
  if (Expected<void> read = context.Read(Id::kNnodes, range, ParseNodeRange); !read) {
    return read;
  }
  config.min_nodes = range.min_nodes;
  config.max_nodes = range.max_nodes;
  const long long restarts = IntegerOf(context, Id::kMaxRestarts);
  if (restarts < 0) {
    return context.Bad(Id::kMaxRestarts, "expected a number from 0");
  }
  constexpr long long kMax = std::numeric_limits<std::uint32_t>::max();
  config.max_restarts = static_cast<std::uint32_t>(std::min(restarts, kMax));
  return {};
}

Expected<void> BuildRendezvous(BuildContext& context) {
  if (Expected<void> built = BuildBackend(context); !built) {
    return built;
  }
  if (Expected<void> built = BuildRunId(context); !built) {
    return built;
  }
  const Expected<bool> file_store = BuildConf(context);
  if (!file_store) {
    return tl::unexpected(file_store.error());
  }
  if (!context.Text(Id::kLocalAddr).empty()) {
    context.config.local_addr = context.Text(Id::kLocalAddr);
  }
  return context.config.rdzv_backend == RdzvBackend::kStatic ? BuildStatic(context)
                                                             : BuildDynamic(context, *file_store);
}

Expected<void> CheckPartOfThisVersion(const BuildContext& context) {
  const LaunchConfig& config = context.config;
  const auto& conf = config.rdzv_configs.raw;
  if (IsEtcd(context.Text(Id::kRdzvBackend))) {
    return context.NotYet(Id::kRdzvBackend, "an etcd rendezvous");
  }
  if (config.max_nodes > 1) {
    return context.NotYet(Id::kNnodes, "a job on several nodes");
  }
  if (context.values[Id::kNumaBinding].is_set) {
    return context.NotYet(Id::kNumaBinding, "CPU placement");
  }
  if (config.rdzv_backend != RdzvBackend::kC10d) {
    return {};
  }
  if (const auto type = conf.find("store_type"); type != conf.end() && type->second != "tcp") {
    return context.NotYet(Id::kRdzvConf, "a rendezvous through a file");
  }
  if (config.rdzv_configs.is_host == false) {
    return context.NotYet(Id::kRdzvConf, "a rendezvous that another process hosts (is_host)");
  }
  const bool here = config.rdzv_configs.is_host == true ||
                    context.environment.IsThisMachine(config.rdzv_endpoint.host);
  return here ? Expected<void>{}
              : context.NotYet(Id::kRdzvEndpoint, "a rendezvous on another machine");
}

}  // namespace ddprun
