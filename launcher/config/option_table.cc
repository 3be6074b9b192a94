#include "launcher/config/option_table.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "rendezvous/base/check.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

using Group = OptionGroup;
using Kind = OptionKind;
using Var = OptionVariable;
using Id = OptionId;

constexpr bool kTorch = true;
constexpr bool kOurs = false;

constexpr std::array<OptionSpec, static_cast<std::size_t>(OptionId::kEnd)> kTable = {{
    {Id::kNnodes, Group::kWorkers, Kind::kText, Var::kPet, kTorch, 0, "nnodes", "N|MIN:MAX", "1:1",
     "", "Number of nodes, or the range of nodes. This version runs on one node."},
    {Id::kNprocPerNode, Group::kWorkers, Kind::kText, Var::kPet, kTorch, 0, "nproc-per-node", "N",
     "one per GPU", "auto|cpu|gpu|xpu",
     "Number of workers on this node: an integer, auto (GPUs, else CPUs), cpu, gpu or xpu. "
     "Without the option ddprun starts one worker per GPU, or one without GPUs; torchrun and "
     "ddprun-launch start one."},
    {Id::kRole, Group::kWorkers, Kind::kText, Var::kPet, kTorch, 0, "role", "NAME", "default", "",
     "Role of the workers: ROLE_NAME, and part of the prefix of tee'd lines."},

    {Id::kRdzvBackend, Group::kRendezvous, Kind::kText, Var::kPet, kTorch, 0, "rdzv-backend",
     "NAME", "static", "static|c10d", "Rendezvous back end: static or c10d."},
    {Id::kRdzvEndpoint, Group::kRendezvous, Kind::kText, Var::kPet, kTorch, 0, "rdzv-endpoint",
     "HOST[:PORT]", "", "",
     "Where the nodes meet. c10d uses localhost:29400 when it is empty, static the master address "
     "and port."},
    {Id::kRdzvId, Group::kRendezvous, Kind::kText, Var::kPet, kTorch, 0, "rdzv-id", "ID", "none",
     "", "Name of the job, equal on all its nodes; part of the log folder's name."},
    {Id::kRdzvConf, Group::kRendezvous, Kind::kList, Var::kPet, kTorch, 0, "rdzv-conf",
     "KEY=VALUE,...", "", "",
     "Rendezvous settings such as join_timeout=600. A repeated option adds to the ones before; the "
     "later value of a key wins."},
    {Id::kStandalone, Group::kRendezvous, Kind::kFlag, Var::kPet, kTorch, 0, "standalone", "", "",
     "",
     "One node alone: back end c10d on a free port of localhost with a random id, whatever the "
     "rendezvous options say."},
    {Id::kNodeRank, Group::kRendezvous, Kind::kInteger, Var::kPet, kTorch, 0, "node-rank", "N", "0",
     "", "Rank of this node, for the static back end."},
    {Id::kMasterAddr, Group::kRendezvous, Kind::kText, Var::kPet, kTorch, 0, "master-addr", "HOST",
     "127.0.0.1", "", "Address of node 0, for the static back end; IPv6 in brackets."},
    {Id::kMasterPort, Group::kRendezvous, Kind::kInteger, Var::kPet, kTorch, 0, "master-port",
     "PORT", "29500", "",
     "Port of node 0, for the static back end. Giving it keeps a one-node job on this port."},
    {Id::kLocalAddr, Group::kRendezvous, Kind::kText, Var::kPet, kTorch, 0, "local-addr", "HOST",
     "", "", "Address by which this node announces itself."},
    {Id::kStoreConf, Group::kRendezvous, Kind::kList, Var::kDdprun, kOurs, 0, "store-conf",
     "KEY=VALUE,...", "", "",
     "Key-value store of the workers: max_key, max_value, max_request, max_store and max_backlog "
     "in bytes, "
     "dialect=auto|2x|1x, legacy=2.1, bind=loopback|any|ADDRESS."},

    {Id::kMaxRestarts, Group::kSupervision, Kind::kInteger, Var::kPet, kTorch, 0, "max-restarts",
     "N", "0", "", "How often the worker group is restarted after a failure."},
    {Id::kMonitorInterval, Group::kSupervision, Kind::kFloat, Var::kPet, kTorch, 0,
     "monitor-interval", "SECONDS", "0.1", "",
     "Pace of sampling the workers. Their end is noticed at once, whatever the interval."},
    {Id::kShutdownTimeout, Group::kSupervision, Kind::kInteger, Var::kPet, kTorch, 0,
     "shutdown-timeout", "SECONDS", "30", "",
     "Time that workers have between the signal to stop and SIGKILL. Without the option "
     "TORCH_ELASTIC_SHUTDOWN_TIMEOUT counts."},
    {Id::kSignalsToHandle, Group::kSupervision, Kind::kList, Var::kPet, kTorch, 0,
     "signals-to-handle", "NAMES", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "",
     "Signals that are passed on to the workers and end the job."},

    {Id::kModule, Group::kScript, Kind::kFlag, Var::kPet, kTorch, 'm', "module", "", "", "",
     "The script is the name of a Python module, run as by python -m."},
    {Id::kNoPython, Group::kScript, Kind::kFlag, Var::kPet, kTorch, 0, "no-python", "", "", "",
     "Run the script itself as a program, without Python."},
    {Id::kRunPath, Group::kScript, Kind::kFlag, Var::kPet, kTorch, 0, "run-path", "", "", "",
     "Run the script by runpy.run_path in a child interpreter. Beats --no-python and --module."},
    {Id::kUseEnv, Group::kScript, Kind::kFlag, Var::kNone, kTorch, 0, "use-env", "", "", "",
     "Do not pass the local rank as an argument; the script reads LOCAL_RANK. ddprun-launch only."},
    {Id::kStartMethod, Group::kScript, Kind::kChoice, Var::kPet, kTorch, 0, "start-method",
     "METHOD", "spawn", "spawn|fork|forkserver",
     "Multiprocessing start method of --run-path workers."},
    {Id::kLocalRankArg, Group::kScript, Kind::kText, Var::kDdprun, kOurs, 0, "local-rank-arg",
     "MODE", "auto", "auto|always|always:--local-rank|always:--local_rank|never",
     "Pass the local rank as an argument: auto (if the script declares it), always[:SPELLING] or "
     "never. ddprun-launch passes it always."},
    {Id::kPython, Group::kScript, Kind::kText, Var::kDdprun, kOurs, 0, "python", "PATH", "", "",
     "Interpreter of the workers. The variable PYTHON_EXEC wins over it."},
    {Id::kOmpNumThreads, Group::kScript, Kind::kText, Var::kDdprun, kOurs, 0, "omp-num-threads",
     "N", "auto", "auto|torchrun",
     "OMP_NUM_THREADS of the workers when it is not set: auto (allowed CPUs divided by workers), "
     "torchrun (1 when there are "
     "several workers) or a number."},
    {Id::kStdin, Group::kScript, Kind::kText, Var::kDdprun, kOurs, 0, "stdin", "RANK", "0",
     "all|none",
     "Which worker reads the standard input: a local rank, all or none. torchrun and ddprun-launch "
     "give it to all."},

    {Id::kLogDir, Group::kOutput, Kind::kText, Var::kPet, kTorch, 0, "log-dir", "DIR", "", "",
     "Folder of the log and error files; a temporary one when unset."},
    {Id::kRedirects, Group::kOutput, Kind::kText, Var::kPet, kTorch, 'r', "redirects", "STREAMS",
     "0", "0|1|2|3",
     "Write output to files only: 0 none, 1 stdout, 2 stderr, 3 both; or by local rank, such as "
     "0:3,1:1."},
    {Id::kTee, Group::kOutput, Kind::kText, Var::kPet, kTorch, 't', "tee", "STREAMS", "0",
     "0|1|2|3", "Write output to files and, with a prefix, to the console; values as --redirects."},
    {Id::kLogLinePrefixTemplate, Group::kOutput, Kind::kText, Var::kPet, kTorch, 0,
     "log-line-prefix-template", "TEMPLATE", "", "",
     "Prefix of tee'd lines with ${role_name}, ${local_rank}, ${rank} and ${hostname}. Without the "
     "option "
     "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE counts."},
    {Id::kLocalRanksFilter, Group::kOutput, Kind::kList, Var::kPet, kTorch, 0, "local-ranks-filter",
     "RANKS", "", "", "Only these local ranks print to the console, such as 0,2."},
    {Id::kDuplicateStdoutFilters, Group::kOutput, Kind::kList, Var::kPet, kTorch, 0,
     "duplicate-stdout-filters", "TEXTS", "", "",
     "Copy tee'd lines of stdout that contain one of these texts to one file; a double comma is a "
     "comma."},
    {Id::kDuplicateStderrFilters, Group::kOutput, Kind::kList, Var::kPet, kTorch, 0,
     "duplicate-stderr-filters", "TEXTS", "", "", "The same for stderr."},
    {Id::kEventLogHandler, Group::kOutput, Kind::kText, Var::kPet, kTorch, 0, "event-log-handler",
     "NAME", "null", "null|console|dynamic_rendezvous",
     "Where the launcher's events go: null, console or dynamic_rendezvous (nowhere, as null)."},
    {Id::kLogsSpecs, Group::kOutput, Kind::kText, Var::kNone, kTorch, 0, "logs-specs", "NAME", "",
     "", "A Python plug-in for the log layout. Plug-ins cannot be used here; a value is an error."},

    {Id::kGpus, Group::kDevices, Kind::kList, Var::kDdprun, kOurs, 0, "gpus", "LIST", "", "",
     "Use only these GPUs: indices, UUIDs or MIG names, such as 2,4,7."},
    {Id::kGpuBinding, Group::kDevices, Kind::kChoice, Var::kDdprun, kOurs, 0, "gpu-binding", "MODE",
     "shared", "shared|exclusive|inherit",
     "What a worker sees: all GPUs of the job (shared), only its own as device 0 (exclusive), or "
     "CUDA_VISIBLE_DEVICES as it is (inherit)."},
    {Id::kGpuIdsFormat, Group::kDevices, Kind::kChoice, Var::kDdprun, kOurs, 0, "gpu-ids-format",
     "FORMAT", "index", "index|uuid", "How CUDA_VISIBLE_DEVICES names the GPUs of a worker."},
    {Id::kVirtualLocalRank, Group::kDevices, Kind::kFlag, Var::kPet, kTorch, 0,
     "virtual-local-rank", "", "", "",
     "LOCAL_RANK is 0 for every worker and each sees only its own GPU; the same as "
     "--gpu-binding=exclusive."},
    {Id::kNumaBinding, Group::kDevices, Kind::kChoice, Var::kNone, kTorch, 0, "numa-binding",
     "MODE", "", "node|socket|exclusive|core-complex",
     "Bind workers to CPUs near their GPU. Not part of this version yet."},

    {Id::kConfig, Group::kGeneral, Kind::kText, Var::kDdprun, kOurs, 0, "config", "FILE", "", "",
     "Read options from a TOML file, weaker than the command line and the variables."},
    {Id::kPrintConfig, Group::kGeneral, Kind::kFlag, Var::kNone, kOurs, 0, "print-config", "", "",
     "", "Print each effective value and where it came from, and exit."},
    {Id::kDryRun, Group::kGeneral, Kind::kFlag, Var::kNone, kOurs, 0, "dry-run", "", "", "",
     "Print each worker's command, environment and devices, and exit."},
    {Id::kPrintCompletion, Group::kGeneral, Kind::kChoice, Var::kNone, kTorch, 0,
     "print-completion", "SHELL", "", "bash|zsh|tcsh",
     "Print a completion script for the shell, and exit."},
    {Id::kVersion, Group::kGeneral, Kind::kFlag, Var::kNone, kOurs, 0, "version", "", "", "",
     "Print the version and the commit it was built from, and exit."},
    {Id::kHelp, Group::kGeneral, Kind::kFlag, Var::kNone, kTorch, 'h', "help", "", "", "",
     "Print this help, and exit."},
}};

std::string_view Basename(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

std::span<const OptionSpec> OptionTable() {
  return kTable;
}

const OptionSpec& SpecOf(OptionId id) {
  const OptionSpec& spec = kTable.at(static_cast<std::size_t>(id));
  DDP_CHECK(spec.id == id);
  return spec;
}

std::string_view TitleOf(OptionGroup group) {
  switch (group) {
    case OptionGroup::kWorkers:
      return "Workers";
    case OptionGroup::kRendezvous:
      return "Rendezvous";
    case OptionGroup::kSupervision:
      return "Supervision";
    case OptionGroup::kScript:
      return "Script";
    case OptionGroup::kOutput:
      return "Output";
    case OptionGroup::kDevices:
      return "Devices";
    case OptionGroup::kGeneral:
    case OptionGroup::kEnd:
      break;
  }
  return "General";
}

bool ExistsFor(const OptionSpec& spec, Program program) {
  return spec.id != OptionId::kUseEnv || program == Program::kLaunch;
}

std::string_view DefaultFor(const OptionSpec& spec, Program program) {
  if (program == Program::kDdprun) {
    return spec.default_text;
  }
  switch (spec.id) {
    case OptionId::kNprocPerNode:
      return "1";
    case OptionId::kOmpNumThreads:
      return "torchrun";
    case OptionId::kStdin:
      return "all";
    case OptionId::kGpuBinding:
      return program == Program::kTorchrun ? "inherit" : spec.default_text;
    case OptionId::kLocalRankArg:
      return program == Program::kLaunch ? "always" : "never";
    default:
      return spec.default_text;
  }
}

std::vector<std::string> LongSpellings(const OptionSpec& spec) {
  std::vector<std::string> spellings{"--" + std::string(spec.name)};
  if (spec.name.find('-') != std::string_view::npos) {
    spellings.push_back("--" + DestinationOf(spec));
  }
  return spellings;
}

std::string DestinationOf(const OptionSpec& spec) {
  std::string destination(spec.name);
  std::replace(destination.begin(), destination.end(), '-', '_');
  return destination;
}

std::string VariableOf(const OptionSpec& spec) {
  if (spec.variable == OptionVariable::kNone) {
    return "";
  }
  std::string name = spec.variable == OptionVariable::kPet ? "PET_" : "DDPRUN_";
  for (const char c : DestinationOf(spec)) {
    name.push_back(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
  }
  return name;
}

std::vector<std::string> ChoicesOf(const OptionSpec& spec) {
  return spec.choices.empty() ? std::vector<std::string>{} : Split(spec.choices, '|');
}

Program ProgramOf(std::string_view argv0) {
  const std::string_view name = Basename(argv0);
  if (name == "ddprun-launch") {
    return Program::kLaunch;
  }
  return name == "torchrun" ? Program::kTorchrun : Program::kDdprun;
}

std::string_view NameOf(Program program) {
  switch (program) {
    case Program::kLaunch:
      return "ddprun-launch";
    case Program::kTorchrun:
      return "torchrun";
    case Program::kDdprun:
      break;
  }
  return "ddprun";
}

}  // namespace ddprun
