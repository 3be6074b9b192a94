#include "launcher/config/value_parsers.h"

#include <csignal>

#include "launcher/config/rdzv_conf.h"
#include "tests/unit/config/config_support.h"

namespace ddprun {
namespace {

TEST_CASE("nnodes is N or MIN:MAX with blanks allowed (row 6)") {
  CHECK(ParseNodeRange("2")->max_nodes == 2);
  CHECK(ParseNodeRange(" 1 : 4 ")->min_nodes == 1);
  CHECK(ParseNodeRange("1:4")->max_nodes == 4);
  for (const char* bad :
       {"1:2:3", "abc", "0", "2:1", "", ":", "1:", "-1", "1.5", "0:1", "99999999999"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseNodeRange(bad));
  }
}

TEST_CASE("nproc-per-node is a number or a keyword (row 7)") {
  using Kind = WorkerCountRequest::Kind;
  CHECK(*ParseNprocPerNode(" 2 ") == WorkerCountRequest{Kind::kNumber, 2});
  CHECK(*ParseNprocPerNode("65536") == WorkerCountRequest{Kind::kNumber, 65536});
  CHECK(ParseNprocPerNode("auto")->kind == Kind::kAuto);
  CHECK(ParseNprocPerNode("cpu")->kind == Kind::kCpu);
  CHECK(ParseNprocPerNode("gpu")->kind == Kind::kGpu);
  CHECK(ParseNprocPerNode("xpu")->kind == Kind::kXpu);
  for (const char* bad : {"foo", "0", "-1", "0x2", "", "1e3", "GPU", " cpu", "65537", "\xd9\xa3"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseNprocPerNode(bad));
  }
}

TEST_CASE("a Slurm value as a count is explained (case 6)") {
  CHECK(ParseNprocPerNode("4(x2)").error().message.find("SLURM_NTASKS_PER_NODE") !=
        std::string::npos);
  CHECK(ParseNprocPerNode("4,3").error().message.find("SLURM_NTASKS_PER_NODE") !=
        std::string::npos);
  CHECK(ParseNprocPerNode("a100:4").error().message.find("SLURM_GPUS_ON_NODE") !=
        std::string::npos);
  CHECK(ParseNprocPerNode("foo").error().message.find("SLURM") == std::string::npos);
}

TEST_CASE("endpoints are split as torch splits them (row 11)") {
  CHECK(*ParseEndpoint("", 29400) == Endpoint{"localhost", 29400});
  CHECK(*ParseEndpoint("  ", 1) == Endpoint{"localhost", 1});
  CHECK(*ParseEndpoint("[::1]", 2) == Endpoint{"::1", 2});
  CHECK(*ParseEndpoint("[::1]:29500", 2) == Endpoint{"::1", 29500});
  CHECK(*ParseEndpoint(" host_a.b-c:0 ", 2) == Endpoint{"host_a.b-c", 0});
  CHECK(*ParseEndpoint("host", 2) == Endpoint{"host", 2});
  CHECK(*ParseEndpoint("a:b:65535", 2) == Endpoint{"a:b", 65535});
  for (const char* bad : {"localhost:99999", "localhost:65536", "bad!host:0", "h:", "h:1a", "h:-1",
                          "h:000001", ":1", "[", "[]:1", "a b:1", "h:+1", "h: 1"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseEndpoint(bad, 2));
  }
  CHECK(ParseEndpoint("host", std::nullopt).error().message ==
        "the port is missing; write HOST:PORT");
}

TEST_CASE("redirects and tee take a digit or pairs of single digits (row 12)") {
  CHECK(ParseStreamSelection("3")->Of(7) == 3);
  const StreamSelection pairs = *ParseStreamSelection("0:1,1:2,5:3,1:0");
  CHECK(pairs.Of(0) == StreamSelection::kOutBit);
  CHECK(pairs.Of(1) == 0);
  CHECK(pairs.Of(5) == (StreamSelection::kOutBit | StreamSelection::kErrBit));
  CHECK(pairs.Of(2) == 0);
  for (const char* bad :
       {"4", "10:1", "", "0:4", "0:1,", ",0:1", "0:1 ,1:1", "3,3", "0:1;1:1", "x"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseStreamSelection(bad));
  }
}

TEST_CASE("the local rank filter is a comma list of integers") {
  CHECK(ParseLocalRanksFilter("")->empty());
  CHECK(*ParseLocalRanksFilter("0, 2,99,-1") == std::set<long long>{-1, 0, 2, 99});
  CHECK_FALSE(ParseLocalRanksFilter("0,a"));
  CHECK_FALSE(ParseLocalRanksFilter("0,"));
}

TEST_CASE("a double comma in a filter is a comma") {
  CHECK(ParseFilterList("apple,orange") == Words{"apple", "orange"});
  CHECK(ParseFilterList("a,,b") == Words{"a,b"});
  CHECK(ParseFilterList("a,,,b") == Words{"a,", "b"});
  CHECK(ParseFilterList("") == Words{""});
  CHECK(ParseFilterList(",") == Words{"", ""});
}

TEST_CASE("key-value lists are trimmed and split at the first `=` (row 9)") {
  const auto pairs = *ParseKeyValues(" join_timeout = 5 , last_call_timeout=3");
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0].key == "join_timeout");
  CHECK(pairs[0].value == "5");
  CHECK(pairs[1].value == "3");
  CHECK((*ParseKeyValues("a=b=c"))[0].value == "b=c");
  CHECK(ParseKeyValues("  ")->empty());
  for (const char* bad : {"foo", "=1", "a=1,", "foo=", "a=1,,b=2", " = "}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseKeyValues(bad));
  }
}

TEST_CASE("rdzv-conf reads the keys of its back end with their types (row 61)") {
  const RdzvConf conf = *ParseRdzvConf(
      "join_timeout=5,read_timeout=7,is_host=YES,keep_alive_interval=2,keep_alive_max_attempt=9,"
      "join_timeout=6",
      RdzvBackend::kC10d);
  CHECK(conf.configs.join_timeout.count() == 6);
  CHECK(conf.configs.read_timeout.count() == 7);
  CHECK(conf.configs.is_host == true);
  CHECK(conf.configs.keep_alive_interval->count() == 2);
  CHECK(conf.configs.keep_alive_max_attempt == 9);
  CHECK(conf.configs.last_call_timeout.count() == 30);
  CHECK(conf.configs.timeout.count() == 900);
  CHECK(conf.warnings.empty());
  for (const char* bad :
       {"join_timeout=0", "read_timeout=0", "is_host=maybe", "store_type=zz",
        "cas_backoff_max_seconds=x", "cas_backoff_max_seconds=-1", "cas_backoff_max_seconds=inf",
        "join_timeout=1.5", "close_timeout=x", "heartbeat_timeout=-2", "keep_alive_interval=0",
        "keep_alive_max_attempt=x", "last_call_timeout=99999999999"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseRdzvConf(bad, RdzvBackend::kC10d));
  }
  for (const char* good : {"is_host=0", "is_host=f", "is_host=N", "store_type=TCP", "use_libuv=0",
                           "cas_backoff_max_seconds=0.5"}) {
    CAPTURE(good);
    CHECK(ParseRdzvConf(good, RdzvBackend::kC10d));
  }
  CHECK(ParseRdzvConf("store_type=File", RdzvBackend::kC10d)->file_store);
}

TEST_CASE("keys of the other back end, unknown keys and reserved names") {
  const RdzvConf other = *ParseRdzvConf("join_timeout=0", RdzvBackend::kStatic);
  CHECK(other.warnings == Words{"'join_timeout' is not used by the back end static"});
  const RdzvConf unknown = *ParseRdzvConf("last_cal_timeout=600", RdzvBackend::kC10d);
  REQUIRE(unknown.warnings.size() == 1);
  CHECK(unknown.warnings[0].find("no key is named 'last_cal_timeout'") == 0);
  CHECK(unknown.warnings[0].find("last_call_timeout") != std::string::npos);
  CHECK(ParseRdzvConf("rank=3", RdzvBackend::kStatic)->warnings ==
        Words{"'rank' is not used; --node-rank is"});
  CHECK(ParseRdzvConf("timeout=4", RdzvBackend::kStatic)->configs.timeout.count() == 4);
  CHECK_FALSE(ParseRdzvConf("timeout=x", RdzvBackend::kStatic));
  for (const char* reserved :
       {"backend=a", "endpoint=a", "run_id=a", "min_nodes=1", "max_nodes=1", "local_addr=a"}) {
    CAPTURE(reserved);
    CHECK_FALSE(ParseRdzvConf(reserved, RdzvBackend::kC10d));
  }
}

TEST_CASE("signals are looked up by Python's names") {
  const SignalSelection some = *ParseSignals("SIGTERM, SIGUSR1,SIGTERM,SIGFOO,TERM");
  CHECK(some.signals == std::vector<int>{SIGTERM, SIGUSR1});
  CHECK(some.unknown == Words{"SIGFOO", "TERM"});
  CHECK(ParseSignals("SIGRTMIN")->signals == std::vector<int>{SIGRTMIN});
  CHECK(ParseSignals("")->unknown == Words{""});
  CHECK_FALSE(ParseSignals("SIGTERM,SIGKILL"));
  CHECK_FALSE(ParseSignals("SIGSTOP"));
}

TEST_CASE("local-rank-arg, omp-num-threads, stdin and gpus") {
  CHECK(ParseLocalRankArg("auto")->mode == LocalRankPolicy::Mode::kAuto);
  CHECK(ParseLocalRankArg("never")->mode == LocalRankPolicy::Mode::kNever);
  CHECK(ParseLocalRankArg("always")->spelling.empty());
  CHECK(ParseLocalRankArg("always:--local_rank")->spelling == "--local_rank");
  CHECK(ParseLocalRankArg("always:local-rank")->spelling == "--local-rank");
  CHECK_FALSE(ParseLocalRankArg("always:"));
  CHECK_FALSE(ParseLocalRankArg("always:--rank"));

  CHECK(ParseOmpNumThreads("auto")->kind == OmpNumThreads::Kind::kAuto);
  CHECK(ParseOmpNumThreads("torchrun")->kind == OmpNumThreads::Kind::kTorchrun);
  CHECK(ParseOmpNumThreads("4")->count == 4);
  CHECK_FALSE(ParseOmpNumThreads("0"));
  CHECK_FALSE(ParseOmpNumThreads("x"));

  CHECK(ParseStdinRoute("all")->ReachesWorker(3));
  CHECK_FALSE(ParseStdinRoute("none")->ReachesWorker(0));
  CHECK(ParseStdinRoute("1")->ReachesWorker(1));
  CHECK_FALSE(ParseStdinRoute("1")->ReachesWorker(0));
  CHECK_FALSE(ParseStdinRoute("-1"));
  CHECK_FALSE(ParseStdinRoute(""));

  CHECK(*ParseGpuList("2,4, 7") == Words{"2", "4", "7"});
  CHECK(*ParseGpuList("GPU-1a2b,MIG-3c") == Words{"GPU-1a2b", "MIG-3c"});
  for (const char* bad : {"", "0,", "a", "0,0", "-1", "GPU-"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseGpuList(bad));
  }
}

TEST_CASE("store-conf sets limits, dialect and address") {
  const StoreConf conf = *ParseStoreConf(
      "max_key=1,max_value=2,max_request=3,max_store=4,max_backlog=5,dialect=1x,legacy=2.1,"
      "bind=::1");
  CHECK(conf.max_key == 1);
  CHECK(conf.max_value == 2);
  CHECK(conf.max_request == 3);
  CHECK(conf.max_store == 4);
  CHECK(conf.max_backlog == 5);
  CHECK(conf.dialect == StoreConf::Dialect::k1x);
  CHECK(conf.legacy == "2.1");
  CHECK(conf.bind == StoreConf::Bind::kAddress);
  CHECK(conf.bind_address == "::1");
  CHECK(ParseStoreConf("bind=any")->bind == StoreConf::Bind::kAny);
  CHECK(ParseStoreConf("bind=loopback")->bind == StoreConf::Bind::kLoopback);
  CHECK(*ParseStoreConf("") == StoreConf{});
  for (const char* bad : {"max_key=0", "max_value=x", "dialect=3x", "legacy=2.0", "bind=host",
                          "foo=1", "max_key", "max_store=-1"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseStoreConf(bad));
  }
}

}  // namespace
}  // namespace ddprun
