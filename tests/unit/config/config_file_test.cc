#include "launcher/config/config_file.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/unit/config/config_support.h"

namespace ddprun {
namespace {

// A file that exists as long as the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) {
    std::string path = "/tmp/ddprun_config_XXXXXX";
    const int fd = ::mkstemp(path.data());
    REQUIRE(fd >= 0);
    ::close(fd);
    path_ = path;
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Words Texts(std::string_view text) {
  const auto entries = ParseConfigText(text, "job.toml", Program::kDdprun);
  if (!entries) {
    FAIL(entries.error().message);
  }
  Words texts;
  for (const ConfigEntry& entry : *entries) {
    texts.push_back(std::string(SpecOf(entry.id).name) + ":" + entry.text);
  }
  return texts;
}

std::string Problem(std::string_view text) {
  const auto entries = ParseConfigText(text, "job.toml", Program::kDdprun);
  REQUIRE_FALSE(entries);
  return entries.error().message;
}

TEST_CASE("names, strings, numbers, flags, arrays and comments of a config file") {
  CHECK(Texts("# head\n"
              "nproc-per-node = 2   # two\n"
              "max_restarts=\"3\"\r\n"
              "\n"
              "role = 'a # b'\n"
              "log-line-prefix-template = \"[${rank}, ${host}] = \"\n"
              "module = true\n"
              "standalone = false\n"
              "signals-to-handle = [\"SIGTERM\", \"SIGINT\"]\n"
              "gpus = [1,\n"
              "  2, # the second\n"
              "  3]\n"
              "master-port = 29501\n") ==
        Words{"nproc-per-node:2", "max-restarts:3", "role:a # b",
              "log-line-prefix-template:[${rank}, ${host}] = ", "module:1", "standalone:0",
              "signals-to-handle:SIGTERM,SIGINT", "gpus:1,2,3", "master-port:29501"});
}

TEST_CASE("tables hold the keys of rdzv-conf and store-conf") {
  CHECK(Texts("rdzv-conf = \"join_timeout=5\"\n"
              "[rdzv_conf]\nread_timeout = 7\n[store-conf]\nbind = \"any\"\nmax_key = 9\n") ==
        Words{"rdzv-conf:join_timeout=5,read_timeout=7", "store-conf:bind=any,max_key=9"});
}

TEST_CASE("commas in an array of filters are doubled") {
  CHECK(Texts("duplicate-stdout-filters = [\"a,b\", \"c\"]\n") ==
        Words{"duplicate-stdout-filters:a,,b,c"});
}

TEST_CASE("what is wrong in a config file is named with its place") {
  CHECK(Problem("a b c\n").find("job.toml:1: expected name = value") == 0);
  CHECK(Problem("\n= 3\n").find("job.toml:2: expected name = value") == 0);
  CHECK(Problem("role =\n").find("job.toml:1: 'role =' has no value") == 0);
  CHECK(Problem("role = \"x\n").find("job.toml:1: this string has no end") == 0);
  CHECK(Problem("\ngpus = [1,\n2\n").find("job.toml:2: this array has no end") == 0);
  CHECK(Problem("gpus = [[1]]\n").find("brackets do not match") != std::string::npos);
  CHECK(Problem("gpus = 1]\n").find("brackets do not match") != std::string::npos);
  CHECK(Problem("[[x]]\n").find("expected a table name") != std::string::npos);
  CHECK(Problem("role = \x01\n").find("control characters") != std::string::npos);
  CHECK(Problem("nproc_per_nod = 2\n").find("did you mean nproc-per-node?") != std::string::npos);
  CHECK(Problem("config = \"x\"\n").find("'config' is not an option for a config file") !=
        std::string::npos);
  CHECK(Problem("use-env = true\n").find("is not an option") != std::string::npos);
  CHECK(Problem("role = a b\n").find("role takes one value") != std::string::npos);
  CHECK(Problem("module = maybe\n").find("a flag is true or false") != std::string::npos);
  CHECK(Problem("role = \"a\"\nnnodes = 1\nrole = \"b\"\n").find("role is given twice") !=
        std::string::npos);
  CHECK(Problem("role = \"a\"\nrole = \"b\"\n").find("role takes one value") != std::string::npos);
  CHECK(Problem("[other]\nx = 1\n").find("the tables are [rdzv-conf] and [store-conf]") !=
        std::string::npos);
}

TEST_CASE("a config file stands below variables and above defaults") {
  const TemporaryFile file("nproc-per-node = 4\nrole = \"file\"\nmax-restarts = 2\n");
  const Environment environment{{"PET_ROLE", "variable"}};
  const LaunchConfig config =
      Parsed({"--config", file.path(), "--max-restarts=5", "s"}, environment);
  CHECK(config.nproc_per_node.number == 4);
  CHECK(config.role == "variable");
  CHECK(config.max_restarts == 5);
  CHECK(ValueOf(config, "nproc-per-node").source == ValueSource::kConfigFile);
  CHECK(ValueOf(config, "nproc-per-node").origin == file.path());
  CHECK(Parsed({"s"}, {{"DDPRUN_CONFIG", file.path()}}).role == "file");
}

TEST_CASE("values of a config file are checked as those of the command line") {
  const TemporaryFile integer("master-port = abc\n");
  CHECK(Refused({"--config", integer.path(), "s"}).exit_code == 2);
  CHECK(Sentence(Refused({"--config", integer.path(), "s"})) ==
        integer.path() + ": master-port = abc: expected a whole number");
  const TemporaryFile choice("start-method = \"zz\"\n");
  CHECK(Refused({"--config", choice.path(), "s"}).exit_code == 2);
  const TemporaryFile meaning("tee = 9\n");
  CHECK(Refused({"--config", meaning.path(), "s"}).exit_code == 1);
  CHECK(Sentence(Refused({"--config", meaning.path(), "s"})).find(meaning.path() + ": tee=9: ") ==
        0);
}

TEST_CASE("a config file has a largest size, and a folder is none") {
  const TemporaryFile exact(std::string(kMaxConfigFileBytes, '\n'));
  CHECK(ReadConfigFile(exact.path(), Program::kDdprun));
  const TemporaryFile large(std::string(kMaxConfigFileBytes + 1, '\n'));
  const auto refused = ReadConfigFile(large.path(), Program::kDdprun);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("larger than 1048576 bytes") != std::string::npos);
  CHECK_FALSE(ReadConfigFile("/tmp", Program::kDdprun));
}

TEST_CASE("what --print-config prints can be read as a config file") {
  const LaunchConfig first =
      Parsed({"--nproc-per-node=2", "--role=a b", "-t0:1", "--module", "--rdzv-backend=c10d",
              "--rdzv-conf=join_timeout=4", "--signals-to-handle=SIGTERM,SIGINT", "mod"});
  const TemporaryFile file(PrintConfig(first));
  const LaunchConfig second = Parsed({"--config", file.path(), "mod"});
  CHECK(second.nproc_per_node == first.nproc_per_node);
  CHECK(second.role == first.role);
  CHECK(second.tee == first.tee);
  CHECK(second.module);
  CHECK(second.rdzv_configs == first.rdzv_configs);
  CHECK(second.handled_signals == first.handled_signals);
  CHECK(second.warnings.empty());
  const TemporaryFile again(PrintConfig(second));
  CHECK(Parsed({"--config", again.path(), "mod"}).role == first.role);
}

}  // namespace
}  // namespace ddprun
