#include "launcher/config/config_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>

#include "launcher/config/build_context.h"
#include "launcher/config/value_parsers.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

using Id = OptionId;

// More seconds than a clock that counts nanoseconds in 64 bits can hold are as good as for ever.
constexpr long long kForeverSeconds = 9'000'000'000;

Expected<void> CheckLaunchForm(BuildContext& context) {
  const RawValues& values = context.values;
  LaunchConfig& config = context.config;
  config.module = values.IsOn(Id::kModule);
  config.no_python = values.IsOn(Id::kNoPython);
  config.run_path = values.IsOn(Id::kRunPath);
  config.use_env = values.program() != Program::kLaunch || values.IsOn(Id::kUseEnv);
  if (config.no_python && !config.use_env) {
    return context.Bad(Id::kNoPython,
                       "ddprun-launch would pass --local-rank to the program; add --use-env");
  }
  return {};
}

Expected<void> BuildWorkers(BuildContext& context) {
  LaunchConfig& config = context.config;
  config.role = context.Text(Id::kRole);
  if (!context.values[Id::kNprocPerNode].is_set ||
      context.values[Id::kNprocPerNode].source == ValueSource::kDefault) {
    const bool per_gpu = config.program == Program::kDdprun;
    using Kind = WorkerCountRequest::Kind;
    config.nproc_per_node =
        per_gpu ? WorkerCountRequest{Kind::kOnePerGpu, 0} : WorkerCountRequest{Kind::kNumber, 1};
    return {};
  }
  return context.Read(Id::kNprocPerNode, config.nproc_per_node, ParseNprocPerNode);
}

Expected<void> BuildStreams(BuildContext& context) {
  LaunchConfig& config = context.config;
  if (Expected<void> read =
          context.Read(Id::kLocalRanksFilter, config.local_ranks_filter, ParseLocalRanksFilter);
      !read) {
    return read;
  }
  if (context.values[Id::kLogsSpecs].is_set) {
    return context.Bad(Id::kLogsSpecs, "Python plug-ins cannot be used; remove the option");
  }
  if (Expected<void> read = context.Read(Id::kRedirects, config.redirects, ParseStreamSelection);
      !read) {
    return read;
  }
  return context.Read(Id::kTee, config.tee, ParseStreamSelection);
}

bool Tees(const StreamSelection& tee, std::uint8_t bit) {
  return (tee.everywhere & bit) != 0 ||
         std::any_of(tee.by_local_rank.begin(), tee.by_local_rank.end(),
                     [bit](const auto& entry) { return (entry.second & bit) != 0; });
}

Expected<void> BuildFilters(BuildContext& context, Id id, std::uint8_t bit,
                            std::vector<std::string>& filters) {
  if (!context.values[id].is_set) {
    return {};
  }
  filters = ParseFilterList(context.Text(id));
  if (context.config.log_dir == "/dev/null") {
    return context.Bad(id, "there is no folder for the copied lines, since --log-dir=/dev/null");
  }
  if (!Tees(context.config.tee, bit)) {
    context.WarnUnused(id, "", "no line is copied, since --tee does not tee that stream");
  }
  return {};
}

void WarnNullLogDir(const BuildContext& context) {
  constexpr std::string_view kWhy = "not used, since --log-dir=/dev/null";
  context.WarnUnused(Id::kRedirects, "0", kWhy);
  context.WarnUnused(Id::kTee, "0", kWhy);
  context.WarnUnused(Id::kLocalRanksFilter, "", kWhy);
}

void BuildTemplate(BuildContext& context) {
  constexpr const char* kVariable = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";
  if (!Tees(context.config.tee, StreamSelection::kOutBit | StreamSelection::kErrBit)) {
    context.WarnUnused(Id::kLogLinePrefixTemplate, "", "not used, since nothing is tee'd (--tee)");
  }
  const std::optional<std::string> variable = context.environment.Get(kVariable);
  if (context.Text(Id::kLogLinePrefixTemplate).empty() && variable) {
    context.values.SetFromVariable(Id::kLogLinePrefixTemplate, *variable, kVariable);
  }
  context.config.log_line_prefix_template = context.Text(Id::kLogLinePrefixTemplate);
}

Expected<void> BuildOutput(BuildContext& context) {
  LaunchConfig& config = context.config;
  if (context.values[Id::kLogDir].is_set && !context.Text(Id::kLogDir).empty()) {
    config.log_dir = context.Text(Id::kLogDir);
  }
  if (config.log_dir == "/dev/null") {
    WarnNullLogDir(context);
  }
  if (Expected<void> built =
          BuildFilters(context, Id::kDuplicateStdoutFilters, StreamSelection::kOutBit,
                       config.duplicate_stdout_filters);
      !built) {
    return built;
  }
  if (Expected<void> built =
          BuildFilters(context, Id::kDuplicateStderrFilters, StreamSelection::kErrBit,
                       config.duplicate_stderr_filters);
      !built) {
    return built;
  }
  BuildTemplate(context);
  const std::string& handler = context.Text(Id::kEventLogHandler);
  if (handler != "null" && handler != "console" && handler != "dynamic_rendezvous") {
    return context.Bad(Id::kEventLogHandler, "expected null, console or dynamic_rendezvous");
  }
  config.event_log_handler =
      handler == "console" ? EventLogHandler::kConsole : EventLogHandler::kNull;
  return {};
}

Expected<void> BuildShutdownTimeout(BuildContext& context) {
  constexpr const char* kVariable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
  const bool given = context.values.IsExplicit(Id::kShutdownTimeout);
  const std::optional<std::string> variable = context.environment.Get(kVariable);
  if (!given && variable) {
    context.values.SetFromVariable(Id::kShutdownTimeout, *variable, kVariable);
  }
  const std::optional<long long> seconds = ParsePythonInt(context.Text(Id::kShutdownTimeout));
  if (!seconds || (given && *seconds < 0)) {
    return context.Bad(Id::kShutdownTimeout, "expected a whole number of seconds from 0");
  }
  // A negative variable is taken for 0 by torch, a negative option is not.
  context.config.shutdown_timeout =
      std::chrono::seconds(std::clamp(*seconds, 0LL, kForeverSeconds));
  return {};
}

Expected<void> BuildSupervision(BuildContext& context) {
  LaunchConfig& config = context.config;
  const double interval = ParsePythonFloat(context.Text(Id::kMonitorInterval)).value_or(0);
  if (!std::isfinite(interval) || interval <= 0) {
    return context.Bad(Id::kMonitorInterval, "expected a number of seconds above 0");
  }
  config.monitor_interval =
      std::chrono::duration<double>(std::min(interval, static_cast<double>(kForeverSeconds)));
  if (Expected<void> built = BuildShutdownTimeout(context); !built) {
    return built;
  }
  config.signals_to_handle = context.Text(Id::kSignalsToHandle);
  SignalSelection selection;
  if (Expected<void> read = context.Read(Id::kSignalsToHandle, selection, ParseSignals); !read) {
    return read;
  }
  for (const std::string& name : selection.unknown) {
    context.Warn(Id::kSignalsToHandle, fmt::format("no signal is named '{}', ignoring it", name));
  }
  config.handled_signals = std::move(selection.signals);
  return {};
}

Expected<void> BuildStartMethod(BuildContext& context) {
  LaunchConfig& config = context.config;
  const std::string& method = context.Text(Id::kStartMethod);
  if (!config.run_path) {
    context.WarnUnused(Id::kStartMethod, "spawn", "not used, only --run-path workers have one");
    return {};
  }
  if (method == "fork") {
    config.start_method = StartMethod::kFork;
  } else if (method == "forkserver") {
    config.start_method = StartMethod::kForkserver;
  } else if (method != "spawn") {
    // Only a variable comes here: torch checks the choices of the command line alone.
    return context.Bad(Id::kStartMethod, "expected spawn, fork or forkserver");
  }
  return {};
}

Expected<void> CheckScriptForm(BuildContext& context) {
  const LaunchConfig& config = context.config;
  if (config.run_path) {
    context.WarnUnused(Id::kModule, "0", "not used, --run-path wins");
    context.WarnUnused(Id::kNoPython, "0", "not used, --run-path wins");
  } else if (config.no_python && config.module) {
    return context.Bad(Id::kNoPython,
                       "cannot go with --module, which needs Python; remove one of the two");
  }
  return {};
}

Expected<void> BuildLocalRankArg(BuildContext& context) {
  LaunchConfig& config = context.config;
  const bool given = context.values.IsExplicit(Id::kLocalRankArg);
  if (context.values.IsOn(Id::kUseEnv) && given) {
    context.WarnUnused(Id::kUseEnv, "0", "not used, --local-rank-arg wins");
  } else if (context.values.IsOn(Id::kUseEnv)) {
    context.values.Derive(Id::kLocalRankArg, "never", "--use-env");
  }
  return context.Read(Id::kLocalRankArg, config.local_rank_arg, ParseLocalRankArg);
}

Expected<void> BuildScript(BuildContext& context) {
  LaunchConfig& config = context.config;
  for (const auto step : {CheckScriptForm, BuildStartMethod, BuildLocalRankArg}) {
    if (Expected<void> built = step(context); !built) {
      return built;
    }
  }
  if (Expected<void> read =
          context.Read(Id::kOmpNumThreads, config.omp_num_threads, ParseOmpNumThreads);
      !read) {
    return read;
  }
  if (config.variables.omp_num_threads_set) {
    context.WarnUnused(Id::kOmpNumThreads, "", "not used, OMP_NUM_THREADS is set and wins");
  }
  if (context.values[Id::kPython].is_set) {
    if (context.Text(Id::kPython).empty()) {
      return context.Bad(Id::kPython, "expected the path of an interpreter");
    }
    config.python = context.Text(Id::kPython);
  }
  if (config.variables.python_exec) {
    context.WarnUnused(Id::kPython, *config.variables.python_exec,
                       "not used, the variable PYTHON_EXEC wins");
  } else if (config.no_python && !config.run_path) {
    context.WarnUnused(Id::kPython, "", "not used, since --no-python");
  }
  return context.Read(Id::kStdin, config.stdin_route, ParseStdinRoute);
}

// --virtual-local-rank is torch's way of an exclusive binding; it goes before ours.
void BuildGpuBinding(BuildContext& context) {
  LaunchConfig& config = context.config;
  config.virtual_local_rank = context.values.IsOn(Id::kVirtualLocalRank);
  if (config.virtual_local_rank) {
    context.WarnUnused(Id::kGpuBinding, "exclusive", "not used, --virtual-local-rank wins");
    context.values.Derive(Id::kGpuBinding, "exclusive", "--virtual-local-rank");
  }
  const std::string& binding = context.Text(Id::kGpuBinding);
  if (binding == "exclusive") {
    config.gpu_binding = GpuBinding::kExclusive;
  } else if (binding == "inherit") {
    config.gpu_binding = GpuBinding::kInherit;
  }
}

DeviceIdFormat IdFormatOf(const BuildContext& context) {
  if (!context.values.IsExplicit(Id::kGpuIdsFormat)) {
    return DeviceIdFormat::kAsGiven;
  }
  return context.Text(Id::kGpuIdsFormat) == "uuid" ? DeviceIdFormat::kUuid : DeviceIdFormat::kIndex;
}

Expected<void> BuildDevices(BuildContext& context) {
  LaunchConfig& config = context.config;
  BuildGpuBinding(context);
  config.gpu_ids_format = IdFormatOf(context);
  if (config.gpu_binding == GpuBinding::kInherit) {
    constexpr std::string_view kWhy =
        "not used for the workers, --gpu-binding=inherit leaves CUDA_VISIBLE_DEVICES as it is";
    context.WarnUnused(Id::kGpuIdsFormat, "index", kWhy);
    context.WarnUnused(Id::kGpus, "", kWhy);
  }
  if (context.values[Id::kGpus].is_set) {
    if (Expected<void> read = context.Read(Id::kGpus, config.gpus, ParseGpuList); !read) {
      return read;
    }
  }
  return context.Read(Id::kStoreConf, config.store_conf, ParseStoreConf);
}

std::string EnvironmentNote(const RawValues& values) {
  std::vector<std::string> used;
  for (const OptionSpec& spec : OptionTable()) {
    const RawValue& value = values[spec.id];
    if (value.source == ValueSource::kVariable && value.origin == VariableOf(spec)) {
      used.push_back(fmt::format("{}={}", value.origin, value.text));
    }
  }
  return used.empty() ? "" : "options from the environment: " + Join(used, ", ");
}

bool IsShown(const OptionSpec& spec, Program program) {
  switch (spec.id) {
    case Id::kHelp:
    case Id::kVersion:
    case Id::kPrintCompletion:
    case Id::kPrintConfig:
    case Id::kDryRun:
    case Id::kConfig:  // Named as the origin of its values; a file cannot name another.
      return false;
    default:
      return ExistsFor(spec, program);
  }
}

std::vector<ConfigValue> ShownValues(const RawValues& values) {
  std::vector<ConfigValue> shown;
  for (const OptionSpec& spec : OptionTable()) {
    if (!IsShown(spec, values.program())) {
      continue;
    }
    const RawValue& value = values[spec.id];
    ConfigValue line{std::string(spec.name), std::nullopt, spec.kind == OptionKind::kFlag,
                     value.source, value.origin};
    if (spec.kind == OptionKind::kFlag) {
      line.text = value.text == "1" ? "true" : "false";
    } else if (value.is_set) {
      line.text = value.text;
    }
    shown.push_back(std::move(line));
  }
  return shown;
}

void AddDeprecation(const BuildContext& context) {
  if (context.config.program == Program::kLaunch) {
    context.config.warnings.insert(
        context.config.warnings.begin(),
        "ddprun-launch does what the deprecated torch.distributed.launch does; ddprun reads "
        "LOCAL_RANK from the environment and is to be preferred");
  }
}

}  // namespace

tl::unexpected<Error> BuildContext::Bad(OptionId id, std::string_view sentence) const {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", values.Describe(id), sentence));
}

void BuildContext::Warn(OptionId id, std::string_view sentence) const {
  config.warnings.push_back(fmt::format("{}: {}", values.Describe(id), sentence));
}

void BuildContext::WarnUnused(OptionId id, std::string_view effective, std::string_view why) const {
  if (values.IsExplicit(id) && Text(id) != effective) {
    Warn(id, why);
  }
}

tl::unexpected<Error> BuildContext::NotYet(OptionId id, std::string_view what) const {
  return Fail(ErrorCode::kUnimplemented,
              fmt::format("{}: {} is not part of this version yet; remove the option",
                          values.Describe(id), what));
}

Expected<LaunchConfig> BuildConfig(RawValues values, const ParsedArguments& arguments,
                                   const Environment& environment) {
  LaunchConfig config;
  config.program = values.program();
  config.training_script = arguments.script.value_or("");
  config.training_script_args = arguments.script_arguments;
  config.dry_run = values.IsOn(Id::kDryRun);
  config.print_config = values.IsOn(Id::kPrintConfig);
  BuildContext context{values, config, environment};
  AddDeprecation(context);
  for (const auto step :
       {BuildLauncherVariables, CheckLaunchForm, DecideStandalone, BuildNodes, BuildWorkers,
        BuildStreams, BuildOutput, BuildScript, BuildRendezvous, BuildSupervision, BuildDevices}) {
    if (Expected<void> built = step(context); !built) {
      return tl::unexpected(built.error());
    }
  }
  if (Expected<void> checked = CheckPartOfThisVersion(context); !checked) {
    return tl::unexpected(checked.error());
  }
  config.environment_note = EnvironmentNote(values);
  config.values = ShownValues(values);
  return config;
}

}  // namespace ddprun
