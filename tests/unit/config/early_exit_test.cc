#include "launcher/config/command_line.h"
#include "launcher/config/option_table.h"
#include "tests/unit/config/config_support.h"

namespace ddprun {
namespace {

TEST_CASE("help, version and completions go to stdout with exit code 0") {
  for (const char* word : {"-h", "--help", "--version", "--print-completion=bash",
                           "--print-completion=zsh", "--print_completion=tcsh"}) {
    CAPTURE(word);
    const EarlyExit early = Refused({word}, {}, "torchrun");
    CHECK(early.exit_code == 0);
    CHECK(early.stream == EarlyExit::Stream::kStdout);
    CHECK(early.text.find("torchrun") != std::string::npos);
    CHECK(early.text.back() == '\n');
  }
  CHECK(Refused({"--version"}).text.find("ddprun 0.") == 0);
  CHECK(Refused({"--bogus", "--help"}).exit_code == 0);
  CHECK(Refused({"--help", "--max-restarts=x"}).exit_code == 0);
  CHECK(Refused({"--max-restarts=x", "--help"}).exit_code == 2);
}

TEST_CASE("a whole configuration is printed with sources, without a script too") {
  const LaunchConfig config =
      Parsed({"--print-config", "--max-restarts=3", "--log-line-prefix-template=\"x\" ", "-t3"},
             {{"PET_ROLE", "r"}});
  CHECK(config.print_config);
  CHECK(config.training_script.empty());
  const std::string text = PrintConfig(config);
  CAPTURE(text);
  const auto has_line = [&text](const std::string& begin, const std::string& end) {
    const std::size_t at = text.find("\n" + begin + " ");
    return at != std::string::npos &&
           text.substr(at + 1, text.find('\n', at + 1) - at - 1).ends_with("  # " + end);
  };
  CHECK(has_line("max-restarts = \"3\"", "command line"));
  CHECK(has_line("role = \"r\"", "variable PET_ROLE"));
  CHECK(has_line("# rdzv-backend = \"c10d\"", "derived: one node, no port given"));
  CHECK(has_line("# monitor-interval = \"0.1\"", "default"));
  CHECK(has_line("# log-dir =", "default (unset)"));
  CHECK(has_line("log-line-prefix-template = '\"x\" '", "command line"));
  CHECK(has_line("# standalone = false", "default"));
  CHECK(PrintConfig(Parsed({"s.py", "a b"})).find("# script: \"s.py\"\n#   argument: \"a b\"\n") !=
        std::string::npos);
}

}  // namespace
}  // namespace ddprun
