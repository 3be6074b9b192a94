#include "launcher/launch_plan.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "agent/gpu/inventory_reader.h"
#include "launcher/config/resolve.h"
#include "launcher/script/local_rank_argument.h"
#include "launcher/script/python_installation.h"
#include "launcher/script/script_check.h"
#include "launcher/script/script_source.h"
#include "launcher/script/worker_command.h"
#include "rendezvous/base/random_id.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

std::uint32_t AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) {
    // More CPUs than the set has room for: then the count of the online ones is right enough.
    return static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  }
  return static_cast<std::uint32_t>(CPU_COUNT(&set));
}

std::string OwnProgramPath() {
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : std::string();
}

TcpStoreSettings ToStoreSettings(const StoreConf& conf) {
  TcpStoreSettings settings;
  settings.mode = conf.dialect == StoreConf::Dialect::k2x   ? DialectMode::kOnly2x
                  : conf.dialect == StoreConf::Dialect::k1x ? DialectMode::kOnly1x
                                                            : DialectMode::kAuto;
  settings.legacy_is_2_1 = conf.legacy == "2.1";
  settings.parse.max_key = conf.max_key.value_or(settings.parse.max_key);
  settings.parse.max_value = conf.max_value.value_or(settings.parse.max_value);
  settings.parse.max_request = conf.max_request.value_or(settings.parse.max_request);
  settings.max_store = conf.max_store.value_or(settings.max_store);
  settings.max_backlog = conf.max_backlog.value_or(settings.max_backlog);
  return settings;
}

// Slurm says so only when the user asked for a number of tasks per node.
std::uint32_t LaunchersOnNode(const Environment& environment) {
  const std::optional<long long> tasks =
      ParsePythonInt(environment.Get("SLURM_NTASKS_PER_NODE").value_or("1"));
  return tasks && *tasks > 0 && *tasks < 4096 ? static_cast<std::uint32_t>(*tasks) : 1;
}

DeviceRequest DevicesWanted(const LaunchConfig& config, const Environment& environment) {
  DeviceRequest request;
  request.workers = config.nproc_per_node;
  request.cpu_count = AllowedCpus();
  request.gpus = config.gpus;
  request.binding = config.gpu_binding;
  request.id_format = config.gpu_ids_format;
  request.virtual_local_rank = config.virtual_local_rank;
  request.launchers_on_node = LaunchersOnNode(environment);
  request.set_device_order = config.program != Program::kTorchrun;
  request.cuda_visible_devices = environment.Get("CUDA_VISIBLE_DEVICES");
  request.hip_visible_devices = environment.Get("HIP_VISIBLE_DEVICES");
  request.cuda_device_order = environment.Get("CUDA_DEVICE_ORDER");
  return request;
}

WorkerTarget TargetOf(const LaunchConfig& config) {
  WorkerTarget target;
  target.kind = config.run_path    ? WorkerTarget::Kind::kRunPath
                : config.no_python ? WorkerTarget::Kind::kProgram
                : config.module    ? WorkerTarget::Kind::kModule
                                   : WorkerTarget::Kind::kScript;
  target.name = config.training_script;
  target.args = config.training_script_args;
  return target;
}

LocalRankProgram ProgramOf(const LaunchConfig& config) {
  switch (config.program) {
    case Program::kLaunch:
      return config.use_env ? LocalRankProgram::kLaunchUseEnv : LocalRankProgram::kLaunch;
    case Program::kTorchrun:
      return LocalRankProgram::kTorchrun;
    case Program::kDdprun:
      break;
  }
  return LocalRankProgram::kDdprun;
}

// The argument with which an old script learns its local rank, if it is to be given one.
std::optional<std::string> LocalRankArgumentFor(const LaunchConfig& config,
                                                const WorkerCommand& command,
                                                const EnvironmentLookup& lookup, LaunchPlan& plan) {
  LocalRankQuestion question;
  question.policy = config.local_rank_arg;
  question.program = ProgramOf(config);
  if (command.target.kind != WorkerTarget::Kind::kProgram) {
    std::vector<std::string> folders;
    const bool needs_torch_version = question.program == LocalRankProgram::kLaunch ||
                                     question.policy.mode == LocalRankPolicy::Mode::kAlways;
    if (command.target.kind == WorkerTarget::Kind::kModule || needs_torch_version) {
      folders = PackageFolders(command.interpreter, lookup);
    }
    const ScannedScript scanned = ScanTarget(command.target, folders);
    question.scan = scanned.scan;
    if (needs_torch_version) {
      const std::optional<std::string> version = FindTorchVersion(folders);
      question.torch_major = version ? MajorVersion(*version) : std::nullopt;
    }
    if (!scanned.scan.complete) {
      plan.warnings.push_back(fmt::format(
          "'{}' is too long to be searched for a local-rank argument to its end", scanned.file));
    }
  }
  std::optional<std::string> argument = DecideLocalRankArgument(question);
  plan.command.program = question.program;
  plan.command.local_rank_argument = argument;
  plan.command.scan = question.scan;
  return argument;
}

Expected<WorkerCommand> CommandFor(const LaunchConfig& config, const EnvironmentLookup& lookup,
                                   LaunchPlan& plan) {
  WorkerCommand command;
  command.target = TargetOf(config);
  if (command.target.kind != WorkerTarget::Kind::kProgram) {
    Expected<Interpreter> interpreter =
        ChooseInterpreter({config.python, OwnProgramPath(), lookup});
    if (!interpreter) {
      return tl::unexpected<Error>(interpreter.error());
    }
    command.interpreter = interpreter->path;
    plan.interpreter = std::move(*interpreter);
  }
  command.local_rank_argument = LocalRankArgumentFor(config, command, lookup, plan);
  return command;
}

// Which addresses the store listens at. One node needs no network: unless the user says otherwise,
// nobody outside can reach it.
void BindStore(const StoreConf& conf, const std::string& advertised, TcpStoreSettings& settings) {
  const bool loopback =
      advertised == "localhost" || advertised == "::1" || advertised.starts_with("127.");
  switch (conf.bind) {
    case StoreConf::Bind::kDefault:
      settings.bind = loopback ? StoreBind::kLoopback : StoreBind::kWildcard;
      return;
    case StoreConf::Bind::kLoopback:
      settings.bind = StoreBind::kLoopback;
      return;
    case StoreConf::Bind::kAny:
      settings.bind = StoreBind::kWildcard;
      return;
    case StoreConf::Bind::kAddress:
      settings.bind = StoreBind::kAddress;
      settings.address = conf.bind_address;
      return;
  }
}

RoundStoreSettings StoreFor(const LaunchConfig& config) {
  RoundStoreSettings settings;
  const bool fixed = config.rdzv_backend == RdzvBackend::kStatic;
  settings.serve = fixed || config.variables.share_rdzv_store;
  settings.server = ToStoreSettings(config.store_conf);
  settings.server.port = fixed ? config.rdzv_endpoint.port : std::uint16_t{0};
  // Numeric, so that no resolver is asked; torchrun hands out the host's full name
  // (docs/torchrun-compat.md).
  settings.advertised_address =
      fixed ? config.rdzv_endpoint.host : config.local_addr.value_or("127.0.0.1");
  BindStore(config.store_conf, settings.advertised_address, settings.server);
  return settings;
}

WorkerBlueprint BlueprintFor(const LaunchConfig& config, const Environment& environment,
                             const WorkerCommand& command, const LaunchPlan& plan) {
  WorkerBlueprint blueprint;
  blueprint.base_environment = environment.variables();
  blueprint.role = config.role;
  blueprint.run_id = config.run_id;
  blueprint.max_restarts = config.max_restarts;
  blueprint.omp_num_threads =
      ResolveOmpNumThreads(config, static_cast<std::uint32_t>(plan.devices.size()), AllowedCpus());
  blueprint.signals_to_handle = config.signals_to_handle;
  blueprint.timer_file = plan.agent.timer_file;
  blueprint.use_agent_store = plan.agent.store.serve;
  blueprint.new_session = !config.run_path;
  for (std::uint32_t local_rank = 0; local_rank < plan.devices.size(); ++local_rank) {
    LocalWorker worker;
    worker.argv = BuildWorkerArgv(command, local_rank);
    for (const EnvironmentChange& change : plan.devices[local_rank].environment) {
      worker.overrides[change.name] = change.value;
    }
    // With one worker it is that worker's, as torchrun's.
    worker.null_stdin = plan.devices.size() > 1 && !config.stdin_route.ReachesWorker(local_rank);
    blueprint.workers.push_back(std::move(worker));
  }
  return blueprint;
}

LogsSpecs LogsFor(const LaunchConfig& config) {
  LogsSpecs logs;
  logs.log_dir = config.log_dir.value_or("");
  logs.redirects = config.redirects;
  logs.tee = config.tee;
  logs.local_ranks_filter = config.local_ranks_filter;
  logs.duplicate_stdout_filters = config.duplicate_stdout_filters;
  logs.duplicate_stderr_filters = config.duplicate_stderr_filters;
  logs.line_prefix_template = config.log_line_prefix_template;
  return logs;
}

NodeAgentOptions AgentOptions(const LaunchConfig& config) {
  NodeAgentOptions options;
  options.job_id = RandomSuffix(16);
  options.role = config.role;
  options.max_restarts = config.max_restarts;
  options.shutdown_timeout = config.shutdown_timeout;
  options.logs = LogsFor(config);
  options.store = StoreFor(config);
  options.handled_signals = config.handled_signals;
  options.monitor_interval = std::chrono::duration_cast<Duration>(config.monitor_interval);
  if (config.variables.uninterruptible_state_timeout) {
    options.uninterruptible_limit = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(*config.variables.uninterruptible_state_timeout));
  }
  if (config.variables.enable_file_timer) {
    options.timer_file = config.variables.timer_file.value_or(
        fmt::format("{}/watchdog_timer_{}", config.variables.temporary_directory, RandomUuid4()));
  }
  return options;
}

// Where the script's name stands among the words of the command line: before its arguments, and
// before the one `--` that may separate them.
std::size_t ScriptIndex(const std::vector<std::string>& words, const LaunchConfig& config) {
  const std::size_t index = words.size() - 1 - config.training_script_args.size();
  return words[index] == "--" && config.training_script != "--" ? index - 1 : index;
}

Expected<void> SelectDevicesFor(const LaunchConfig& config, const DeviceRequest& wanted,
                                const DeviceInventory& inventory, LaunchPlan& plan) {
  Expected<DeviceSelection> selection = SelectDevices(wanted, inventory);
  if (!selection) {
    return tl::unexpected<Error>(selection.error());
  }
  plan.devices = std::move(selection->workers);
  plan.warnings.insert(plan.warnings.end(), selection->warnings.begin(), selection->warnings.end());
  if (!selection->summary.empty()) {
    plan.notes.push_back(selection->summary);
  }
  return CheckLocalWorldSize(config, static_cast<std::uint32_t>(plan.devices.size()));
}

}  // namespace

Expected<LaunchPlan> MakeLaunchPlan(const LaunchConfig& config, const Environment& environment,
                                    const std::vector<std::string>& words) {
  LaunchPlan plan;
  const DeviceRequest wanted = DevicesWanted(config, environment);
  // The probe works while the script is read.
  std::optional<InventoryReader> reader;
  if (NeedsInventory(wanted)) {
    reader.emplace(InventoryReader::Start({}));
  }
  const EnvironmentLookup lookup = [&environment](std::string_view name) {
    return environment.Get(name);
  };
  plan.agent = AgentOptions(config);
  Expected<WorkerCommand> command = CommandFor(config, lookup, plan);
  if (!command) {
    return tl::unexpected<Error>(command.error());
  }
  const DeviceInventory inventory = reader ? reader->Finish(nullptr) : DeviceInventory();
  if (Expected<void> selected = SelectDevicesFor(config, wanted, inventory, plan); !selected) {
    return tl::unexpected<Error>(selected.error());
  }
  const auto workers = static_cast<std::uint32_t>(plan.devices.size());
  if (Expected<void> usable = CheckTarget(command->target, workers, lookup); !usable) {
    return tl::unexpected<Error>(usable.error());
  }
  if (Expected<void> usable = CheckLogsSpecs(plan.agent.logs, config.run_id); !usable) {
    return tl::unexpected<Error>(usable.error());
  }
  plan.agent.blueprint = BlueprintFor(config, environment, *command, plan);
  plan.command.words = words;
  plan.command.script_at = ScriptIndex(words, config);
  return plan;
}

}  // namespace ddprun
