// Which rendezvous a command line means, and which explicit values are reported as unused (case 8).

#include "launcher/config/option_table.h"
#include "tests/unit/config/config_support.h"

namespace ddprun {
namespace {

TEST_CASE("one node without port and endpoint runs standalone (torch 2.12's rule)") {
  CHECK(Parsed({"s"}).implicit_standalone);
  CHECK(Parsed({"--nnodes=1:1", "s"}).implicit_standalone);
  CHECK(Parsed({"--rdzv-backend=static", "s"}).implicit_standalone);
  CHECK(Parsed({"--rdzv-endpoint=", "s"}).implicit_standalone);
  for (const Words& words : std::vector<Words>{{"--master-port=29500", "s"},
                                               {"--rdzv-endpoint=localhost:29500", "s"},
                                               {"--rdzv-backend=c10d", "s"}}) {
    CAPTURE(words);
    CHECK_FALSE(Parsed(words).implicit_standalone);
  }
  CHECK_FALSE(Parsed({"s"}, {{"PET_MASTER_PORT", "29500"}}).implicit_standalone);
  const LaunchConfig explicit_one = Parsed({"--standalone", "s"});
  CHECK(explicit_one.standalone);
  CHECK_FALSE(explicit_one.implicit_standalone);
  CHECK(explicit_one.rdzv_endpoint == Endpoint{"localhost", 0});
  CHECK(explicit_one.run_id.size() == 36);
  CHECK(Parsed({"--standalone", "s"}).run_id != explicit_one.run_id);
}

TEST_CASE("static takes its address from the master options or from the endpoint") {
  const LaunchConfig master = Parsed({"--master-addr=10.1.1.1", "--master-port=7", "s"});
  CHECK(master.rdzv_backend == RdzvBackend::kStatic);
  CHECK(master.rdzv_endpoint == Endpoint{"10.1.1.1", 7});
  CHECK(master.master_addr == "10.1.1.1");
  CHECK(master.master_port == 7);
  CHECK(master.warnings.empty());
  const LaunchConfig six = Parsed({"--master-addr=[::1]", "--master-port=7", "s"});
  CHECK(six.master_addr == "::1");
  const LaunchConfig endpoint = Parsed({"--rdzv-endpoint=h:8", "s"});
  CHECK(endpoint.master_addr == "h");
  CHECK(endpoint.master_port == 8);
}

struct WarningRow {
  Words words;
  Words begins;  // One beginning for each warning expected, in order.
};

void CheckWarnings(const std::vector<WarningRow>& rows, const Environment& environment = {}) {
  for (const WarningRow& row : rows) {
    CAPTURE(row.words);
    const LaunchConfig config = Parsed(row.words, environment);
    CAPTURE(config.warnings);
    REQUIRE(config.warnings.size() == row.begins.size());
    for (std::size_t i = 0; i < row.begins.size(); ++i) {
      CHECK(config.warnings[i].find(row.begins[i]) == 0);
    }
  }
}

TEST_CASE("an explicit value that is not used gets exactly one warning, a default none") {
  const std::string endpoint = "--rdzv-endpoint=localhost:0";
  CheckWarnings({
      {{"s"}, {}},
      {{"--standalone", "s"}, {}},
      {{"--standalone", "--rdzv-backend=c10d", endpoint, "s"}, {}},
      {{"--standalone", "--rdzv-backend=static", "s"}, {"--rdzv-backend=static: not used"}},
      {{"--standalone", "--rdzv-endpoint=h:1", "s"}, {"--rdzv-endpoint=h:1: not used"}},
      {{"--standalone", "--rdzv-id=7", "s"}, {"--rdzv-id=7: not used"}},
      {{"--standalone", "--master-addr=h", "s"}, {"--master-addr=h: not used"}},
      {{"--standalone", "--master-port=1", "s"}, {"--master-port=1: not used"}},
      {{"--standalone", "--node-rank=1", "s"}, {"--node-rank=1: not used"}},
      {{"--rdzv-backend=static", "s"}, {"--rdzv-backend=static: not used"}},
      {{"--rdzv-id=7", "s"}, {"--rdzv-id=7: not used"}},
      {{"--master-addr=h", "s"}, {"--master-addr=h: not used"}},
      {{"--node-rank=1", "s"}, {"--node-rank=1: not used"}},
      // What a single node has anyway.
      {{"--master-addr=127.0.0.1", "--node-rank=0", "s"}, {}},
      {{"--rdzv-backend=c10d", "--master-addr=h", "s"}, {"--master-addr=h: not used by the back"}},
      {{"--rdzv-backend=c10d", "--master-port=1", "s"}, {"--master-port=1: not used by the back"}},
      {{"--rdzv-backend=c10d", "--node-rank=1", "s"}, {"--node-rank=1: not used by the back end"}},
      {{"--rdzv-backend=c10d", "--rdzv-id=7", "s"}, {}},
      {{"--rdzv-endpoint=h:1", "--master-addr=x", "--master-port=2", "s"},
       {"--master-addr=x: not used", "--master-port=2: not used"}},
      {{"--rdzv-endpoint=h:1", "--master-addr=h", "--master-port=1", "s"}, {}},
      {{"--rdzv-backend=c10d", "--rdzv-conf=timeout=3", "s"},
       {"--rdzv-conf=timeout=3: 'timeout' is not used by the back end c10d"}},
      {{"--rdzv-backend=c10d", "--rdzv-conf=last_cal_timeout=3", "s"},
       {"--rdzv-conf=last_cal_timeout=3: no key is named 'last_cal_timeout', ignoring it"}},
      {{"--start-method=fork", "s"}, {"--start-method=fork: not used"}},
      {{"--start-method=spawn", "s"}, {}},
      {{"--log-line-prefix-template=x", "s"}, {"--log-line-prefix-template=x: not used"}},
      {{"--duplicate-stdout-filters=x", "-t2", "s"}, {"--duplicate-stdout-filters=x: no line"}},
      {{"--duplicate-stderr-filters=x", "-t0:2", "s"}, {}},
      {{"--run-path", "-m", "--no-python", "s"}, {"--module: not used", "--no-python: not used"}},
      {{"--python=/p", "--no-python", "s"}, {"--python=/p: not used"}},
      {{"--log-dir=/dev/null", "-r1", "-t3", "--local-ranks-filter=0", "s"},
       {"--redirects=1: not used", "--tee=3: not used", "--local-ranks-filter=0: not used"}},
      {{"--gpu-binding=inherit", "--gpus=1", "s"}, {"--gpus=1: not used"}},
      {{"--gpu-binding=inherit", "--gpu-ids-format=uuid", "s"}, {"--gpu-ids-format=uuid: not"}},
      {{"--virtual-local-rank", "--gpu-binding=shared", "s"}, {"--gpu-binding=shared: not used"}},
      {{"--virtual-local-rank", "--gpu-binding=exclusive", "s"}, {}},
      {{"--signals-to-handle=SIGTERM,SIGFOO", "s"},
       {"--signals-to-handle=SIGTERM,SIGFOO: no signal is named 'SIGFOO'"}},
      {{"--signals-to-handle=", "s"}, {"--signals-to-handle=: no signal is named ''"}},
  });
  CheckWarnings({{{"--omp-num-threads=4", "s"}, {"--omp-num-threads=4: not used"}}, {{"s"}, {}}},
                {{"OMP_NUM_THREADS", "2"}});
  CheckWarnings({{{"--python=/q", "s"}, {"--python=/q: not used"}}, {{"--python=/p", "s"}, {}}},
                {{"PYTHON_EXEC", "/p"}});
  CheckWarnings({{{"s"}, {"PET_RDZV_ID=7: not used"}}}, {{"PET_RDZV_ID", "7"}});
}

TEST_CASE("launch warns of its age once, and of --use-env that loses") {
  const LaunchConfig config =
      Parsed({"--use-env", "--local-rank-arg=always", "s"}, {}, "ddprun-launch");
  REQUIRE(config.warnings.size() == 2);
  CHECK(config.warnings[1].find("--use-env: not used") == 0);
  CHECK(config.local_rank_arg.mode == LocalRankPolicy::Mode::kAlways);
}

TEST_CASE("--standalone on the command line does not wait for an operator's nodes (case 7)") {
  const Environment pod{{"PET_NNODES", "3"}, {"PET_NODE_RANK", "1"}, {"PET_MASTER_ADDR", "m"}};
  const LaunchConfig config = Parsed({"--standalone", "s"}, pod);
  CHECK(config.max_nodes == 1);
  REQUIRE(config.warnings.size() == 3);
  CHECK(config.warnings[0] == "PET_NNODES=3: not used, --standalone runs on one node");
  CHECK(ValueOf(config, "nnodes").source == ValueSource::kDerived);
  CHECK(Refused({"s"}, pod).exit_code == 1);
  CHECK(Refused({"--standalone", "--nnodes=3", "s"}).exit_code == 1);
  CHECK(Refused({"--standalone", "s"}, {{"PET_NNODES", "x"}}).exit_code == 1);
}

}  // namespace
}  // namespace ddprun
