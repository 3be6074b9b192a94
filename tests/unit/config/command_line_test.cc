#include "launcher/config/command_line.h"

#include <csignal>

#include "launcher/config/option_table.h"
#include "tests/unit/config/config_support.h"

namespace ddprun {
namespace {

// A value of each option that differs from its default and is accepted on a single node.
std::string GoodValue(OptionId id) {
  switch (id) {
    case OptionId::kNnodes:
      return "1";
    case OptionId::kNprocPerNode:
      return "3";
    case OptionId::kRdzvBackend:
      return "c10d";
    case OptionId::kRdzvEndpoint:
      return "localhost:1234";
    case OptionId::kRdzvConf:
      return "timeout=5";
    case OptionId::kNodeRank:
      return "0";
    case OptionId::kMasterPort:
    case OptionId::kMaxRestarts:
    case OptionId::kShutdownTimeout:
    case OptionId::kOmpNumThreads:
      return "7";
    case OptionId::kMonitorInterval:
      return "0.5";
    case OptionId::kStoreConf:
      return "max_key=9";
    case OptionId::kSignalsToHandle:
      return "SIGUSR1";
    case OptionId::kLocalRankArg:
      return "always:--local_rank";
    case OptionId::kStdin:
      return "none";
    case OptionId::kRedirects:
    case OptionId::kTee:
      return "2";
    case OptionId::kLocalRanksFilter:
      return "0,1";
    case OptionId::kEventLogHandler:
      return "console";
    case OptionId::kStartMethod:
      return "fork";
    case OptionId::kGpus:
      return "1,2";
    case OptionId::kGpuBinding:
      return "inherit";
    case OptionId::kGpuIdsFormat:
      return "uuid";
    default:
      return "some-text";
  }
}

// Options whose value ends the program, names a file or is not there yet have tests of their own.
bool InTable(const OptionSpec& spec) {
  switch (spec.id) {
    case OptionId::kLogsSpecs:
    case OptionId::kNumaBinding:
    case OptionId::kConfig:
    case OptionId::kPrintCompletion:
    case OptionId::kPrintConfig:
    case OptionId::kDryRun:
    case OptionId::kVersion:
    case OptionId::kHelp:
      return false;
    default:
      return true;
  }
}

// Keeps the rendezvous static, so that no option is overruled by the implicit standalone.
Words Static(Words words) {
  words.insert(words.begin(), "--rdzv-endpoint=localhost:29500");
  return WithScript(std::move(words));
}

TEST_CASE("every option works in both spellings and both forms of a value (row 4)") {
  for (const OptionSpec& spec : OptionTable()) {
    if (!InTable(spec)) {
      continue;
    }
    const bool flag = spec.kind == OptionKind::kFlag;
    const std::string value = GoodValue(spec.id);
    const std::string program = spec.id == OptionId::kUseEnv ? "ddprun-launch" : "ddprun";
    for (const std::string& spelling : LongSpellings(spec)) {
      CAPTURE(spelling);
      std::vector<Words> forms;
      if (flag) {
        forms = {{spelling}};
      } else {
        forms = {{spelling + "=" + value}, {spelling, value}};
      }
      for (const Words& form : forms) {
        const LaunchConfig config = Parsed(Static(form), {}, program);
        const bool same = spec.id == OptionId::kStandalone || spec.id == OptionId::kRdzvEndpoint;
        const ConfigValue& shown = ValueOf(config, spec.name);
        CHECK(shown.source == ValueSource::kFlag);
        CHECK((shown.text == (flag ? "true" : value) || same));
        CHECK(config.training_script == "train.py");
      }
    }
  }
}

TEST_CASE("every option with a variable takes it, below the command line") {
  for (const OptionSpec& spec : OptionTable()) {
    const std::string variable = VariableOf(spec);
    if (!InTable(spec) || variable.empty()) {
      continue;
    }
    CAPTURE(variable);
    const bool flag = spec.kind == OptionKind::kFlag;
    const std::string value = flag ? "-3" : GoodValue(spec.id);
    const LaunchConfig config =
        Parsed({"--rdzv-endpoint=localhost:29500", "train.py"}, {{variable, value}});
    if (spec.id != OptionId::kRdzvEndpoint) {
      const ConfigValue& shown = ValueOf(config, spec.name);
      CHECK(shown.source == ValueSource::kVariable);
      CHECK(shown.origin == variable);
      CHECK(shown.text == (flag ? "true" : value));
      CHECK(config.environment_note.find(variable + "=") != std::string::npos);
    }
    if (!flag) {
      const Words words{"--rdzv-endpoint=localhost:29500",
                        "--" + std::string(spec.name) + "=" + GoodValue(spec.id), "train.py"};
      const LaunchConfig by_flag = Parsed(words, {{variable, "17"}});
      CHECK(ValueOf(by_flag, spec.name).source == ValueSource::kFlag);
      CHECK(by_flag.environment_note.empty());
    }
  }
}

TEST_CASE("torchrun's defaults are those of torch 2.15.0") {
  const LaunchConfig config = Parsed({"train.py"}, {}, "torchrun");
  CHECK(config.program == Program::kTorchrun);
  CHECK(config.nproc_per_node == WorkerCountRequest{WorkerCountRequest::Kind::kNumber, 1});
  CHECK(config.implicit_standalone);
  CHECK(config.rdzv_backend == RdzvBackend::kC10d);
  CHECK(config.rdzv_endpoint == Endpoint{"localhost", 0});
  CHECK(config.run_id.size() == 36);
  CHECK(config.max_restarts == 0);
  CHECK(config.monitor_interval.count() == 0.1);
  CHECK(config.shutdown_timeout.count() == 30);
  CHECK(config.handled_signals == std::vector<int>{SIGTERM, SIGINT, SIGHUP, SIGQUIT});
  CHECK(config.role == "default");
  CHECK(config.use_env);
  CHECK(config.local_rank_arg.mode == LocalRankPolicy::Mode::kNever);
  CHECK(config.omp_num_threads.kind == OmpNumThreads::Kind::kTorchrun);
  CHECK(config.stdin_route.kind == StdinRoute::Kind::kAll);
  CHECK(config.duplicate_stdout_filters.empty());
  CHECK(config.local_ranks_filter.empty());
  CHECK_FALSE(config.log_dir);
  CHECK(config.warnings.empty());
  CHECK(config.environment_note.empty());
}

TEST_CASE("ddprun's and ddprun-launch's own defaults") {
  const LaunchConfig ours = Parsed({"train.py"});
  CHECK(ours.nproc_per_node.kind == WorkerCountRequest::Kind::kOnePerGpu);
  CHECK(ours.local_rank_arg.mode == LocalRankPolicy::Mode::kAuto);
  CHECK(ours.omp_num_threads.kind == OmpNumThreads::Kind::kAuto);
  CHECK(ours.stdin_route == StdinRoute{StdinRoute::Kind::kRank, 0});
  CHECK(ours.gpu_binding == GpuBinding::kShared);
  CHECK(ours.warnings.empty());

  const LaunchConfig launch = Parsed({"train.py"}, {}, "/opt/bin/ddprun-launch");
  CHECK_FALSE(launch.use_env);
  CHECK(launch.local_rank_arg.mode == LocalRankPolicy::Mode::kAlways);
  CHECK(launch.nproc_per_node == WorkerCountRequest{WorkerCountRequest::Kind::kNumber, 1});
  REQUIRE(launch.warnings.size() == 1);
  CHECK(launch.warnings[0].find("deprecated") != std::string::npos);
  const LaunchConfig use_env = Parsed({"--use_env", "train.py"}, {}, "ddprun-launch");
  CHECK(use_env.use_env);
  CHECK(use_env.local_rank_arg.mode == LocalRankPolicy::Mode::kNever);
}

TEST_CASE("saying the number of workers anywhere replaces one per GPU") {
  CHECK(Parsed({"--nproc-per-node=1", "s"}).nproc_per_node.kind ==
        WorkerCountRequest::Kind::kNumber);
  CHECK(Parsed({"s"}, {{"PET_NPROC_PER_NODE", "2"}}).nproc_per_node.number == 2);
  CHECK(
      Parsed({"--nproc_per_node", "1", "s"}, {{"PET_NPROC_PER_NODE", "2"}}).nproc_per_node.number ==
      1);  // Row 14.
  CHECK(Parsed({"--nproc_per_node", "1", "--nproc_per_node", "2", "s"}).nproc_per_node.number ==
        2);  // Row 22.
}

TEST_CASE("variables give defaults (row 13)") {
  const LaunchConfig config = Parsed(
      {"env.py"}, {{"PET_NPROC_PER_NODE", "2"}, {"PET_ROLE", "foo"}, {"PET_MASTER_PORT", "29611"}});
  CHECK(config.nproc_per_node.number == 2);
  CHECK(config.role == "foo");
  CHECK(config.master_port == 29611);
  CHECK(config.rdzv_backend == RdzvBackend::kStatic);
  CHECK(config.run_id == "none");
  CHECK(config.environment_note ==
        "options from the environment: PET_NPROC_PER_NODE=2, PET_ROLE=foo, PET_MASTER_PORT=29611");
}

TEST_CASE("flag variables are integers, checked before anything else (row 15)") {
  for (const char* bad : {"true", "", "1.0", "yes"}) {
    CAPTURE(bad);
    const EarlyExit early = Refused({"--help"}, {{"PET_STANDALONE", bad}});
    CHECK(early.exit_code == 1);
    CHECK(Sentence(early).find("PET_STANDALONE=") == 0);
  }
  CHECK(Parsed({"s"}, {{"PET_STANDALONE", "1"}}).standalone);
  CHECK_FALSE(Parsed({"s"}, {{"PET_STANDALONE", "1"}}).implicit_standalone);
  const LaunchConfig off = Parsed({"--master-port=1", "s"}, {{"PET_STANDALONE", "0"}});
  CHECK_FALSE(off.standalone);
  CHECK(off.run_id == "none");
  CHECK(Parsed({"s"}, {{"PET_MODULE", "-7"}}).module);
}

struct ErrorRow {
  Words words;
  int exit_code;
  std::string sentence;  // How it begins.
};

void CheckErrors(const std::vector<ErrorRow>& rows, std::string_view program = "ddprun") {
  for (const ErrorRow& row : rows) {
    CAPTURE(row.words);
    const EarlyExit early = Refused(row.words, {}, program);
    CHECK(early.exit_code == row.exit_code);
    const std::string sentence = Sentence(early);
    CAPTURE(sentence);
    CHECK(sentence.find(row.sentence) == 0);
  }
}

TEST_CASE("misuse of the command line: usage, one line, exit code 2 (row 5)") {
  CheckErrors({
      {{}, 2, "the script is missing (training_script, training_script_args)"},
      {{"--"}, 2, "the script is missing"},
      {{"--nnodes", "1"}, 2, "the script is missing"},
      {{"--bogus", "env.py"}, 2, "--bogus: no such option"},
      {{"--nproc_per_nodes=2", "s"},
       2,
       "--nproc_per_nodes=2: no such option; did you mean --nproc_per_node?"},
      {{"--use-env", "s"}, 2, "--use-env: no such option"},
      {{"--max_restarts=x", "s"}, 2, "--max_restarts=x: expected a whole number"},
      {{"--max-restarts=99999999999999999999", "s"}, 2, "--max-restarts=9"},
      {{"--master-port=1.5", "s"}, 2, "--master-port=1.5: expected a whole number"},
      {{"--node-rank=", "s"}, 2, "--node-rank=: expected a whole number"},
      {{"--shutdown-timeout=x", "s"}, 2, "--shutdown-timeout=x: expected a whole number"},
      {{"--monitor-interval=x", "s"}, 2, "--monitor-interval=x: expected a number"},
      {{"--start_method=zz", "s"}, 2, "--start_method=zz: expected spawn, fork, forkserver"},
      {{"--numa-binding=zz", "s"}, 2, "--numa-binding=zz: expected node, socket"},
      {{"--gpu-binding=zz", "s"}, 2, "--gpu-binding=zz: expected shared, exclusive, inherit"},
      {{"--gpu-ids-format=zz", "s"}, 2, "--gpu-ids-format=zz: expected index, uuid"},
      {{"--print-completion=fish", "s"}, 2, "--print-completion=fish: expected bash, zsh, tcsh"},
      {{"--module=x", "s"}, 2, "--module: takes no value"},
      {{"--rdzv", "s"}, 2, "--rdzv: ambiguous option"},
      {{"--role"}, 2, "--role: expected a value"},
      {{"--config=/nonexistent/job.toml", "s"}, 2, "--config=/nonexistent/job.toml: no such file"},
  });
}

TEST_CASE("options that cannot be carried out: one line, exit code 1 (rows 6 to 12, 17, 61)") {
  CheckErrors({
      {{"--nnodes=1:2:3", "s"}, 1, "--nnodes=1:2:3: expected N or MIN:MAX"},
      {{"--nnodes=abc", "s"}, 1, "--nnodes=abc: "},
      {{"--nnodes=0", "s"}, 1, "--nnodes=0: expected 0 < MIN <= MAX"},
      {{"--nnodes=2:1", "s"}, 1, "--nnodes=2:1: "},
      {{"--nnodes=", "s"}, 1, "--nnodes=: "},
      {{"--nproc_per_node=foo", "s"}, 1, "--nproc-per-node=foo: expected a whole number"},
      {{"--nproc_per_node=0", "s"}, 1, "--nproc-per-node=0: expected 1 to"},
      {{"--nproc_per_node", "-1", "s"}, 1, "--nproc-per-node=-1: "},
      {{"--nproc-per-node=4(x2)", "s"}, 1, "--nproc-per-node=4(x2): "},
      {{"--max_restarts", "-1", "s"}, 1, "--max-restarts=-1: expected a number from 0"},
      {{"--monitor_interval=0", "s"}, 1, "--monitor-interval=0: "},
      {{"--monitor_interval=nan", "s"}, 1, "--monitor-interval=nan: "},
      {{"--monitor_interval=inf", "s"}, 1, "--monitor-interval=inf: "},
      {{"--rdzv_conf=foo", "s"}, 1, "--rdzv-conf=foo: "},
      {{"--rdzv_conf==1", "s"}, 1, "--rdzv-conf==1: "},
      {{"--rdzv_conf=a=1,", "s"}, 1, "--rdzv-conf=a=1,: "},
      {{"--rdzv_conf=join_timeout=0", "s"}, 1, "--rdzv-conf=join_timeout=0: join_timeout=0"},
      {{"--rdzv_conf=backend=x", "s"}, 1, "--rdzv-conf=backend=x: "},
      {{"--rdzv_backend=zzz", "s"}, 1, "--rdzv-backend=zzz: no such back end"},
      {{"--rdzv_backend=", "s"}, 1, "--rdzv-backend=: no such back end"},
      {{"--rdzv_backend=static", "--rdzv_endpoint=localhost", "s"},
       1,
       "--rdzv-endpoint=localhost: the port is missing"},
      {{"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:99999", "s"},
       1,
       "--rdzv-endpoint=localhost:99999: the port must be"},
      {{"--rdzv-endpoint=bad!host:0", "s"}, 1, "--rdzv-endpoint=bad!host:0: the host must be"},
      {{"--master-port=65536", "s"}, 1, "--master-port=65536: "},
      {{"--master-port=-1", "s"}, 1, "--master-port=-1: "},
      {{"--master-addr=a!b", "--master-port=1", "s"}, 1, "--master-addr=a!b: the host"},
      {{"--node-rank=5", "--master-port=1", "s"}, 1, "--node-rank=5: expected a rank from 0 to 0"},
      {{"-t", "4", "s"}, 1, "--tee=4: "},
      {{"-t", "10:1", "s"}, 1, "--tee=10:1: "},
      {{"-r", "x", "s"}, 1, "--redirects=x: "},
      {{"--local-ranks-filter=a", "s"}, 1, "--local-ranks-filter=a: "},
      {{"--logs-specs=foo", "s"}, 1, "--logs-specs=foo: Python plug-ins cannot be used"},
      {{"--event-log-handler=foo", "s"}, 1, "--event-log-handler=foo: expected null, console"},
      {{"--signals-to-handle=SIGKILL", "s"}, 1, "--signals-to-handle=SIGKILL: SIGKILL cannot"},
      {{"--shutdown-timeout=-1", "s"}, 1, "--shutdown-timeout=-1: "},
      {{"--no_python", "-m", "x"}, 1, "--no-python: cannot go with --module"},
      {{"--rdzv-id=a/b", "--master-port=1", "s"}, 1, "--rdzv-id=a/b: "},
      {{"--log-dir=/dev/null", "--duplicate-stdout-filters=a", "s"},
       1,
       "--duplicate-stdout-filters=a: "},
      {{"--gpus=a", "s"}, 1, "--gpus=a: "},
      {{"--stdin=x", "s"}, 1, "--stdin=x: "},
      {{"--omp-num-threads=0", "s"}, 1, "--omp-num-threads=0: "},
      {{"--local-rank-arg=x", "s"}, 1, "--local-rank-arg=x: "},
      {{"--store-conf=foo=1", "s"}, 1, "--store-conf=foo=1: no key is named 'foo'"},
      {{"--python=", "s"}, 1, "--python=: "},
  });
}

TEST_CASE("what is not part of this version is said in one sentence, after all other checks") {
  const std::string_view tail = "is not part of this version yet; remove the option";
  for (const Words& words : std::vector<Words>{
           {"--nnodes=2", "s"},
           {"--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost", "s"},
           {"--standalone", "--nnodes=2", "s"},
           {"--rdzv-backend=etcd", "--rdzv-endpoint=h:1", "s"},
           {"--rdzv-backend=etcd-v2", "s"},
           {"--numa-binding=node", "s"},
           {"--rdzv-backend=c10d", "--rdzv-endpoint=other.example:29400", "s"},
           {"--rdzv-backend=c10d", "--rdzv-conf=is_host=0", "s"},
           {"--rdzv-backend=c10d", "--rdzv-conf=store_type=file", "--rdzv-endpoint=/a/b", "s"},
       }) {
    CAPTURE(words);
    const EarlyExit early = Refused(words);
    CHECK(early.exit_code == 1);
    CHECK(Sentence(early).find(tail) != std::string::npos);
  }
  CHECK(Sentence(Refused({"--nnodes=2", "--tee=9", "s"})).find("--tee=9") == 0);
}

TEST_CASE("a c10d endpoint on this machine is accepted, by name, address or is_host") {
  Environment environment;
  environment.set_host_test([](const std::string& host) { return host == "node7"; });
  CHECK(Parsed({"--rdzv-backend=c10d", "--rdzv-endpoint=node7", "s"}, environment).rdzv_endpoint ==
        Endpoint{"node7", 29400});
  CHECK(Parsed({"--rdzv-backend=c10d", "--rdzv-endpoint=[::1]:5", "s"}).rdzv_endpoint.port == 5);
  CHECK(Parsed({"--rdzv-backend=c10d", "s"}).rdzv_endpoint == Endpoint{"localhost", 29400});
  CHECK(Parsed({"--rdzv-backend=c10d", "--rdzv-endpoint=x:1", "--rdzv-conf=is_host=1", "s"})
            .rdzv_configs.is_host == true);
}

TEST_CASE("launch without Python needs --use-env (row 21)") {
  const EarlyExit early = Refused({"--no_python", "x"}, {}, "ddprun-launch");
  CHECK(early.exit_code == 1);
  CHECK(early.text.find("ddprun-launch: error: --no-python: ") == 0);
  CHECK(Parsed({"--no_python", "--use-env", "x"}, {}, "ddprun-launch").no_python);
}

TEST_CASE("variables with a bad value") {
  CHECK(Refused({"s"}, {{"PET_MASTER_PORT", "abc"}}).exit_code == 2);
  CHECK(Sentence(Refused({"s"}, {{"PET_MASTER_PORT", "abc"}})) ==
        "PET_MASTER_PORT=abc: expected a whole number");
  CHECK(Refused({"s"}, {{"PET_MONITOR_INTERVAL", ""}}).exit_code == 2);
  CHECK(Refused({"s"}, {{"PET_NNODES", ""}}).exit_code == 1);
  CHECK(Refused({"s"}, {{"PET_TEE", "9"}}).exit_code == 1);
  CHECK(Refused({"s"}, {{"DDPRUN_GPU_BINDING", "zz"}}).exit_code == 2);
  CHECK(Refused({"s"}, {{"LOGLEVEL", "LOUD"}}).exit_code == 1);
  CHECK(Refused({"s"}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "x"}}).exit_code == 1);
  // Not looked at when the command line says otherwise, and help is help.
  CHECK(Parsed({"--master-port=1", "s"}, {{"PET_MASTER_PORT", "abc"}}).master_port == 1);
  CHECK(Refused({"--help"}, {{"PET_MASTER_PORT", "abc"}}).exit_code == 0);
}

TEST_CASE("the choices of PET_START_METHOD are not enforced, as in torch, until it is used") {
  CHECK(Parsed({"s"}, {{"PET_START_METHOD", "zz"}}).start_method == StartMethod::kSpawn);
  CHECK(Refused({"--run-path", "s"}, {{"PET_START_METHOD", "zz"}}).exit_code == 1);
  CHECK(Parsed({"--run-path", "s"}, {{"PET_START_METHOD", "fork"}}).start_method ==
        StartMethod::kFork);
}

TEST_CASE("the shutdown timeout: option, then variable, then 30 s") {
  const Environment variable{{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "12"}};
  CHECK(Parsed({"s"}, variable).shutdown_timeout.count() == 12);
  CHECK(Parsed({"--shutdown-timeout=0", "s"}, variable).shutdown_timeout.count() == 0);
  CHECK(Parsed({"s"}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "-5"}}).shutdown_timeout.count() == 0);
  CHECK(ValueOf(Parsed({"s"}, variable), "shutdown-timeout").origin ==
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
}

TEST_CASE("the prefix template: option if not empty, then variable") {
  const Environment variable{{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "v "}};
  CHECK(Parsed({"s"}, variable).log_line_prefix_template == "v ");
  CHECK(Parsed({"-t3", "--log-line-prefix-template=", "s"}, variable).log_line_prefix_template ==
        "v ");
  CHECK(Parsed({"-t3", "--log-line-prefix-template=o", "s"}, variable).log_line_prefix_template ==
        "o");
}

TEST_CASE("an explicit empty filter is one empty element, which matches everything") {
  CHECK(Parsed({"-t3", "--duplicate-stdout-filters=", "s"}).duplicate_stdout_filters == Words{""});
  CHECK(Parsed({"-t3", "--duplicate-stderr-filters=a,,b,c", "s"}).duplicate_stderr_filters ==
        Words{"a,b", "c"});
}

TEST_CASE("repeated --rdzv-conf and --store-conf add up (case 9)") {
  const LaunchConfig config = Parsed(
      {"--rdzv-backend=c10d", "--rdzv-conf=join_timeout=1,read_timeout=2", "--rdzv-conf", "",
       "--rdzv_conf=join_timeout=3", "--store-conf=max_key=1", "--store-conf=bind=any", "s"});
  CHECK(config.rdzv_configs.join_timeout.count() == 3);
  CHECK(config.rdzv_configs.read_timeout.count() == 2);
  CHECK(config.store_conf.max_key == 1);
  CHECK(config.store_conf.bind == StoreConf::Bind::kAny);
}

TEST_CASE("an empty rendezvous id becomes a random number, with a warning") {
  const LaunchConfig config = Parsed({"--rdzv-id=", "--master-port=1", "s"});
  CHECK_FALSE(config.run_id.empty());
  CHECK(config.run_id.find_first_not_of("0123456789") == std::string::npos);
  REQUIRE(config.warnings.size() == 1);
  CHECK(config.warnings[0].find("--rdzv-id=: an empty id") == 0);
}

TEST_CASE("the other variables of the launcher") {
  const LaunchConfig config =
      Parsed({"s"}, {{"PYTHON_EXEC", "/p"},
                     {"OMP_NUM_THREADS", ""},
                     {"TORCHELASTIC_ENABLE_FILE_TIMER", "1"},
                     {"TORCHELASTIC_TIMER_FILE", "/t"},
                     {"TORCHELASTIC_ERROR_FILE", "/e"},
                     {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"},
                     {"TMPDIR", ""},
                     {"TEMP", "/temp"},
                     {"LOGLEVEL", "INFO"},
                     {"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", "2.5"}});
  const LauncherVariables& variables = config.variables;
  CHECK(variables.python_exec == "/p");
  CHECK(variables.omp_num_threads_set);
  CHECK(variables.enable_file_timer);
  CHECK(variables.timer_file == "/t");
  CHECK(variables.error_file == "/e");
  CHECK_FALSE(variables.share_rdzv_store);
  CHECK(variables.temporary_directory == "/temp");
  CHECK(variables.log_level == "INFO");
  CHECK(variables.uninterruptible_state_timeout == 2.5);
  CHECK(Parsed({"s"}).variables == LauncherVariables{});
  for (const char* off : {"0", "-1", "x", "nan"}) {
    CHECK_FALSE(Parsed({"s"}, {{"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", off}})
                    .variables.uninterruptible_state_timeout);
  }
}

TEST_CASE("script forms and devices") {
  CHECK(Parsed({"-m", "env", "z"}).module);
  CHECK(Parsed({"-m", "env", "z"}).training_script_args == Words{"z"});
  CHECK(Parsed({"--no-python", "echo", "x${local_rank}"}).no_python);
  CHECK(Parsed({"--python=/p", "s"}).python == "/p");
  CHECK(Parsed({"--dry-run", "s"}).dry_run);
  CHECK(Parsed({"--virtual-local-rank", "s"}).gpu_binding == GpuBinding::kExclusive);
  const LaunchConfig exclusive = Parsed({"--gpu-binding=exclusive", "s"});
  CHECK(exclusive.gpu_binding == GpuBinding::kExclusive);
  CHECK_FALSE(exclusive.virtual_local_rank);
  CHECK(Parsed({"--gpus=2,4", "s"}).gpus == Words{"2", "4"});
  CHECK(Parsed({"--local-addr=10.0.0.1", "s"}).local_addr == "10.0.0.1");
}

}  // namespace
}  // namespace ddprun
