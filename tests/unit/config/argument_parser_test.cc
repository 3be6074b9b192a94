#include "launcher/config/argument_parser.h"

#include "tests/unit/config/config_support.h"

namespace ddprun {
namespace {

ParsedArguments Scan(const Words& words, Program program = Program::kDdprun) {
  return ParseArguments(words, program);
}

// "name=value" for each use, flags without value as "name".
Words Uses(const ParsedArguments& parsed) {
  Words uses;
  for (const OptionUse& use : parsed.uses) {
    const OptionSpec& spec = SpecOf(use.id);
    uses.push_back(std::string(spec.name) +
                   (spec.kind == OptionKind::kFlag ? "" : "=" + use.value));
  }
  return uses;
}

TEST_CASE("everything behind the first word that is no option belongs to the script (row 1, 2)") {
  const ParsedArguments parsed = Scan({"env.py", "a", "--b", "c", "--nproc_per_node=2", "-h"});
  CHECK(parsed.script == "env.py");
  CHECK(parsed.script_arguments == Words{"a", "--b", "c", "--nproc_per_node=2", "-h"});
  CHECK(parsed.uses.empty());
}

TEST_CASE("one `--` directly before or behind the script is dropped (row 3)") {
  struct Row {
    Words words;
    std::string script;
    Words arguments;
  };
  const std::vector<Row> rows = {
      {{"--", "s.py", "a"}, "s.py", {"a"}},
      {{"s.py", "--", "a"}, "s.py", {"a"}},
      {{"--", "s.py", "--", "a"}, "s.py", {"--", "a"}},
      {{"s.py", "a", "--", "b"}, "s.py", {"a", "--", "b"}},
      {{"s.py", "--", "--", "a"}, "s.py", {"--", "a"}},
      {{"s.py", "--", "x", "--"}, "s.py", {"x", "--"}},
      {{"-m", "--", "mod", "x"}, "mod", {"x"}},
      {{"--", "--nnodes", "2"}, "--nnodes", {"2"}},
      {{"s.py", "--"}, "s.py", {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.words);
    const ParsedArguments parsed = Scan(row.words);
    CHECK_FALSE(parsed.error);
    CHECK(parsed.script == row.script);
    CHECK(parsed.script_arguments == row.arguments);
  }
}

TEST_CASE("a lone `--` gives no script") {
  CHECK_FALSE(Scan({"--"}).script);
  CHECK_FALSE(Scan({"--nnodes", "1", "--"}).script);
}

TEST_CASE("values come with `=`, as the next word, or behind a short option") {
  CHECK(Uses(Scan({"--nnodes=1", "--role", "a b", "s"})) == Words{"nnodes=1", "role=a b"});
  CHECK(Uses(Scan({"-r3", "-t", "1", "s"})) == Words{"redirects=3", "tee=1"});
  CHECK(Uses(Scan({"-r=3", "-t=", "s"})) == Words{"redirects=3", "tee="});
  CHECK(Uses(Scan({"-r0:1=2", "s"})) == Words{"redirects=0:1=2"});
  CHECK(Uses(Scan({"--role=", "--role=a=b", "s"})) == Words{"role=", "role=a=b"});
  CHECK(Uses(Scan({"--role", "", "s"})) == Words{"role="});
}

TEST_CASE("short flags may be joined with what follows") {
  CHECK(Uses(Scan({"-mr3", "s"})) == Words{"module", "redirects=3"});
  CHECK(Uses(Scan({"-mt", "2", "s"})) == Words{"module", "tee=2"});
  CHECK(Uses(Scan({"-mh"})) == Words{"module", "help"});
  CHECK(Scan({"-mx", "s"}).error == "-m: takes no value, but 'x' was given");
  CHECK(Scan({"-m=x", "s"}).error == "-m: takes no value, but 'x' was given");
}

TEST_CASE("a word that looks like an option is no value, unless it is a negative number") {
  CHECK(Uses(Scan({"--max-restarts", "-1", "s"})) == Words{"max-restarts=-1"});
  CHECK(Uses(Scan({"--monitor-interval", "-.5", "s"})) == Words{"monitor-interval=-.5"});
  CHECK(Uses(Scan({"--role", "-", "s"})) == Words{"role=-"});
  CHECK(Uses(Scan({"--role", "-x y", "s"})) == Words{"role=-x y"});
  CHECK(Scan({"--role", "-x", "s"}).error ==
        "--role: expected a value (NAME); write --role=-x if '-x' is meant as the value");
  CHECK(Scan({"--role", "--tee", "s"}).error.has_value());
  CHECK(Scan({"--role", "-1e3", "s"}).error.has_value());
  CHECK(Scan({"--role", "--", "s"}).error == "--role: expected a value (NAME)");
  CHECK(Scan({"--role"}).error == "--role: expected a value (NAME)");
}

TEST_CASE("a negative number, a dash and an empty word can be the script") {
  CHECK(Scan({"-5", "x"}).script == "-5");
  CHECK(Scan({"-", "x"}).script == "-");
  CHECK(Scan({"", "x"}).script == "");
}

TEST_CASE("flags take no value (row 18)") {
  CHECK(Scan({"--module=x", "s"}).error == "--module: takes no value, but 'x' was given");
  CHECK(Scan({"--standalone=", "s"}).error == "--standalone: takes no value, but '' was given");
}

TEST_CASE("a prefix stands for the one option that it fits, in both spellings") {
  CHECK(Uses(Scan({"--nproc", "2", "s"})) == Words{"nproc-per-node=2"});
  CHECK(Uses(Scan({"--master_p", "1", "s"})) == Words{"master-port=1"});
  CHECK(Uses(Scan({"--rdzv-b=c10d", "s"})) == Words{"rdzv-backend=c10d"});
  CHECK(Uses(Scan({"--log-d", "x", "s"})) == Words{"log-dir=x"});
  CHECK(Uses(Scan({"--max", "1", "s"})) == Words{"max-restarts=1"});
  CHECK(Uses(Scan({"--stan", "s"})) == Words{"standalone"});
  CHECK(Scan({"--rdzv", "x", "s"}).error->find("--rdzv: ambiguous option") == 0);
  CHECK(Scan({"--log", "x", "s"}).error->find("--log-dir or") != std::string::npos);
}

TEST_CASE("our own options never make a prefix ambiguous that torchrun takes") {
  CHECK(Uses(Scan({"--print-c", "bash", "s"})) == Words{"print-completion=bash"});
  CHECK(Uses(Scan({"--virtual-local", "s"})) == Words{"virtual-local-rank"});
  CHECK(Uses(Scan({"--local-rank", "0", "s"})) == Words{"local-ranks-filter=0"});
  CHECK(Uses(Scan({"--gpus", "0", "s"})) == Words{"gpus=0"});
  CHECK(Uses(Scan({"--print-conf", "s"})) == Words{"print-config"});
  CHECK(Scan({"--gpu", "0", "s"}).error.has_value());
}

TEST_CASE("an exact name is never ambiguous") {
  for (const OptionSpec& spec : OptionTable()) {
    for (const std::string& spelling : LongSpellings(spec)) {
      CAPTURE(spelling);
      const Words words =
          spec.kind == OptionKind::kFlag ? Words{spelling, "s"} : Words{spelling, "v", "s"};
      const ParsedArguments parsed = Scan(words, Program::kLaunch);
      REQUIRE_FALSE(parsed.error);
      REQUIRE(parsed.uses.size() == 1);
      CHECK(parsed.uses[0].id == spec.id);
      CHECK(parsed.uses[0].spelling == spelling);
      CHECK(parsed.script == "s");
    }
  }
}

TEST_CASE("unknown options are collected and the nearest one is named") {
  const ParsedArguments parsed = Scan({"--bogus", "x", "s"});
  CHECK(parsed.unrecognized == Words{"--bogus"});
  CHECK(parsed.script == "x");
  CHECK(DescribeUnrecognized({"--nproc-per-nod3"}, Program::kDdprun) ==
        "--nproc-per-nod3: no such option; did you mean --nproc-per-node?");
  CHECK(DescribeUnrecognized({"--nproc_per_nod3=2"}, Program::kDdprun) ==
        "--nproc_per_nod3=2: no such option; did you mean --nproc_per_node?");
  CHECK(DescribeUnrecognized({"--zzzzzzzzzzzz"}, Program::kDdprun) ==
        "--zzzzzzzzzzzz: no such option; --help lists all");
  CHECK(DescribeUnrecognized({"-x", "--y"}, Program::kDdprun).find("no such options: -x --y") == 0);
}

TEST_CASE("--use-env exists for ddprun-launch alone") {
  CHECK(Scan({"--use-env", "s"}).unrecognized == Words{"--use-env"});
  CHECK(Scan({"--use_env", "s"}, Program::kTorchrun).unrecognized == Words{"--use_env"});
  CHECK(Uses(Scan({"--use_env", "s"}, Program::kLaunch)) == Words{"use-env"});
}

TEST_CASE("words behind the script are never looked at, even if they would be ambiguous") {
  const ParsedArguments parsed = Scan({"s.py", "--log", "x", "--rdzv"});
  CHECK_FALSE(parsed.error);
  CHECK(parsed.script_arguments == Words{"--log", "x", "--rdzv"});
}

}  // namespace
}  // namespace ddprun
