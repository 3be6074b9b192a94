#pragma once

// LaunchConfig: what one launch shall do, after the command line, the PET_* and DDPRUN_* variables
// and the config file were read, checked and merged. A value: made once by ParseCommandLine()
// (command_line.h), then only read. Fields carry torch's destination names (torch 2.15.0,
// torch/distributed/run.py and launcher/api.py), so that a torchrun user can read our code. It
// holds no process state: numbers that depend on the machine (GPU and CPU counts) are resolved
// later by the functions of resolve.h.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/core/logs_specs.h"
#include "agent/gpu/device_selection.h"
#include "launcher/script/local_rank_argument.h"

namespace ddprun {

// Which of the three names the program was called by; it selects defaults (DESIGN sections 2, 6,
// 7).
enum class Program {
  kDdprun,    // `ddprun`, and every name that is neither of the others.
  kLaunch,    // `ddprun-launch`: the semantics of python -m torch.distributed.launch.
  kTorchrun,  // `torchrun`: torchrun's defaults to the letter.
};

// Where an effective value came from, weakest first. kDerived stands outside that order: another
// option decided it (standalone makes the rendezvous values, for example).
enum class ValueSource { kDefault, kConfigFile, kVariable, kFlag, kDerived };

// One line of --print-config.
struct ConfigValue {
  std::string name;                 // Long name with dashes, without the leading ones.
  std::optional<std::string> text;  // The effective value as a user would write it; unset: none.
  bool is_flag = false;             // The text is "true" or "false".
  ValueSource source = ValueSource::kDefault;
  std::string
      origin;  // The variable's name, the file's path, or what a derived value derives from.
};

// A host without brackets and a port; 0 means "any free port".
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

enum class RdzvBackend { kStatic, kC10d };

// --rdzv-conf with its types (spec of torch 2.15.0); an absent key has torch's default. Keys of the
// other back end were reported and are not here.
struct RdzvConfigs {
  std::chrono::seconds join_timeout{600};
  std::chrono::seconds last_call_timeout{30};
  std::chrono::seconds close_timeout{30};
  std::chrono::seconds heartbeat_timeout{5};
  std::optional<std::chrono::seconds> keep_alive_interval;  // Unset: DESIGN section 4 decides.
  std::optional<std::uint32_t> keep_alive_max_attempt;      // Unset: DESIGN section 4 decides.
  std::chrono::seconds read_timeout{60};
  std::chrono::seconds timeout{900};       // static: limit for reaching the master.
  std::optional<bool> is_host;             // c10d: host the store here; inferred when unset.
  std::map<std::string, std::string> raw;  // As given, trimmed, later options over earlier ones.

  friend bool operator==(const RdzvConfigs&, const RdzvConfigs&) = default;
};

enum class StartMethod { kSpawn, kFork, kForkserver };
enum class EventLogHandler { kNull, kConsole };

// --omp-num-threads; ResolveOmpNumThreads() makes the number.
struct OmpNumThreads {
  enum class Kind {
    kAuto,      // Allowed CPUs divided by local workers, at least 1; nothing for a single worker.
    kTorchrun,  // 1 when there are several workers; nothing for a single worker.
    kCount,     // This number, whatever the number of workers.
  };
  Kind kind = Kind::kAuto;
  std::uint32_t count = 1;  // kCount only.

  friend bool operator==(const OmpNumThreads&, const OmpNumThreads&) = default;
};

// --stdin: which worker reads the launcher's standard input; the others read /dev/null.
struct StdinRoute {
  enum class Kind { kAll, kNone, kRank };
  Kind kind = Kind::kAll;
  std::uint32_t local_rank = 0;  // kRank only.

  bool ReachesWorker(std::uint32_t rank) const {
    return kind == Kind::kAll || (kind == Kind::kRank && rank == local_rank);
  }

  friend bool operator==(const StdinRoute&, const StdinRoute&) = default;
};

// --store-conf: limits and behaviour of the key-value store that workers connect to. An unset limit
// is the store's own default. Sizes are in bytes.
struct StoreConf {
  enum class Dialect { kAuto, k2x, k1x };
  enum class Bind { kDefault, kLoopback, kAny, kAddress };

  std::optional<std::uint64_t> max_key;
  std::optional<std::uint64_t> max_value;
  std::optional<std::uint64_t> max_request;
  std::optional<std::uint64_t> max_store;
  std::optional<std::uint64_t> max_backlog;
  Dialect dialect = Dialect::kAuto;
  std::string legacy;  // "2.1": answer as the server of that torch did; empty: off.
  Bind bind = Bind::kDefault;
  std::string bind_address;  // kAddress only: a numeric IPv4 or IPv6 address.

  friend bool operator==(const StoreConf&, const StoreConf&) = default;
};

// Launcher variables that are no options (spec section 2.5), read once and checked like options.
struct LauncherVariables {
  std::string log_level = "WARNING";         // LOGLEVEL: a level name of Python's logging.
  std::optional<std::string> python_exec;    // PYTHON_EXEC: the interpreter, before --python.
  std::optional<std::string> error_file;     // TORCHELASTIC_ERROR_FILE: the launcher's own record.
  bool omp_num_threads_set = false;          // OMP_NUM_THREADS is there, even if empty.
  bool enable_file_timer = false;            // TORCHELASTIC_ENABLE_FILE_TIMER is exactly "1".
  std::optional<std::string> timer_file;     // TORCHELASTIC_TIMER_FILE.
  bool share_rdzv_store = true;              // TORCH_DISABLE_SHARE_RDZV_TCP_STORE is not "1".
  std::string temporary_directory = "/tmp";  // TMPDIR, TEMP or TMP, the first that is not empty.
  std::optional<double> uninterruptible_state_timeout;  // Seconds; unset: the check is off.

  friend bool operator==(const LauncherVariables&, const LauncherVariables&) = default;
};

struct LaunchConfig {
  Program program = Program::kDdprun;

  // Workers and nodes.
  std::uint32_t min_nodes = 1;
  std::uint32_t max_nodes = 1;
  WorkerCountRequest
      nproc_per_node;  // Before anything was counted; SelectDevices() makes the number.
  std::string role = "default";

  // Rendezvous. For static the endpoint is master_addr:master_port unless --rdzv-endpoint was
  // given.
  bool standalone = false;           // --standalone, or torch 2.12's implicit form of it.
  bool implicit_standalone = false;  // The second of the two.
  RdzvBackend rdzv_backend = RdzvBackend::kStatic;
  Endpoint rdzv_endpoint;
  std::string run_id = "none";  // --rdzv-id; never empty.
  RdzvConfigs rdzv_configs;
  std::uint32_t node_rank = 0;
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 29500;
  std::optional<std::string> local_addr;

  // Supervision.
  std::uint32_t max_restarts = 0;
  std::chrono::duration<double> monitor_interval{0.1};
  std::string signals_to_handle = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";  // The text, for the workers.
  std::vector<int> handled_signals;  // Its known names as numbers, in order, without repeats.
  std::chrono::seconds shutdown_timeout{30};

  // What a worker runs.
  std::string training_script;  // Path, module name (module) or program (no_python).
  std::vector<std::string> training_script_args;
  bool module = false;
  bool no_python = false;
  bool run_path = false;  // Beats the two above.
  bool use_env = true;    // False only for kLaunch without --use-env.
  StartMethod start_method = StartMethod::kSpawn;
  LocalRankPolicy local_rank_arg;
  std::optional<std::string> python;  // --python PATH; PYTHON_EXEC still wins.
  OmpNumThreads omp_num_threads;
  StdinRoute stdin_route;

  // Output.
  std::optional<std::string> log_dir;
  StreamSelection redirects;
  StreamSelection tee;
  std::string log_line_prefix_template;    // Empty: torch's built-in prefix.
  std::set<long long> local_ranks_filter;  // Empty: all ranks. Numbers without a rank match none.
  std::vector<std::string> duplicate_stdout_filters;
  std::vector<std::string> duplicate_stderr_filters;
  EventLogHandler event_log_handler = EventLogHandler::kNull;

  // Devices.
  std::vector<std::string>
      gpus;  // Indices, UUIDs (or prefixes of them), MIG names; empty: the pool.
  GpuBinding gpu_binding = GpuBinding::kShared;  // kExclusive also when virtual_local_rank.
  DeviceIdFormat gpu_ids_format = DeviceIdFormat::kAsGiven;
  bool virtual_local_rank = false;  // --virtual-local-rank or --gpu-binding=exclusive.

  StoreConf store_conf;
  LauncherVariables variables;

  bool dry_run = false;
  bool print_config = false;

  // One sentence each, to be logged once before anything starts.
  std::vector<std::string> warnings;
  // "options from the environment: PET_NNODES=1, PET_ROLE=trainer"; empty when none is in effect.
  std::string environment_note;
  // Every option's effective value in the order of the option table, for --print-config.
  std::vector<ConfigValue> values;
};

}  // namespace ddprun
