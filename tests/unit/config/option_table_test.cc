#include "launcher/config/option_table.h"

#include <fstream>
#include <set>
#include <sstream>

#include "launcher/config/completions.h"
#include "launcher/config/manual.h"
#include "launcher/config/usage.h"
#include "tests/unit/config/config_support.h"

namespace ddprun {
namespace {

const std::string kRoot = std::string(DDPRUN_TESTDATA) + "/../../";

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_CASE("the rows of the table stand in the order of their ids, with unique names") {
  std::set<std::string> names;
  std::size_t index = 0;
  for (const OptionSpec& spec : OptionTable()) {
    CAPTURE(spec.name);
    CHECK(static_cast<std::size_t>(spec.id) == index++);
    CHECK(&SpecOf(spec.id) == &spec);
    for (const std::string& spelling : LongSpellings(spec)) {
      CHECK(names.insert(spelling).second);
    }
    CHECK(spec.metavar.empty() == (spec.kind == OptionKind::kFlag));
    CHECK(spec.help.ends_with('.'));
    CHECK((spec.kind != OptionKind::kChoice || !spec.choices.empty()));
    CHECK((spec.variable != OptionVariable::kPet || spec.torch));
    CHECK((spec.variable != OptionVariable::kDdprun || !spec.torch));
  }
}

TEST_CASE("variables are named after the destination") {
  CHECK(VariableOf(SpecOf(OptionId::kModule)) == "PET_MODULE");
  CHECK(VariableOf(SpecOf(OptionId::kRedirects)) == "PET_REDIRECTS");
  CHECK(VariableOf(SpecOf(OptionId::kNprocPerNode)) == "PET_NPROC_PER_NODE");
  CHECK(VariableOf(SpecOf(OptionId::kGpuBinding)) == "DDPRUN_GPU_BINDING");
  for (const OptionId id : {OptionId::kLogsSpecs, OptionId::kNumaBinding, OptionId::kUseEnv,
                            OptionId::kPrintCompletion, OptionId::kHelp}) {
    CHECK(VariableOf(SpecOf(id)).empty());
  }
}

TEST_CASE("the program's name selects the defaults") {
  CHECK(ProgramOf("/usr/bin/torchrun") == Program::kTorchrun);
  CHECK(ProgramOf("ddprun-launch") == Program::kLaunch);
  CHECK(ProgramOf("./ddprun") == Program::kDdprun);
  CHECK(ProgramOf("something-else") == Program::kDdprun);
  CHECK(ProgramOf("") == Program::kDdprun);
  CHECK(DefaultFor(SpecOf(OptionId::kNprocPerNode), Program::kTorchrun) == "1");
  CHECK(DefaultFor(SpecOf(OptionId::kStdin), Program::kLaunch) == "all");
  CHECK(DefaultFor(SpecOf(OptionId::kOmpNumThreads), Program::kDdprun) == "auto");
}

TEST_CASE("help names every option of the program once, in groups") {
  for (const Program program : {Program::kDdprun, Program::kLaunch, Program::kTorchrun}) {
    const std::string help = HelpText(program);
    for (const OptionSpec& spec : OptionTable()) {
      CAPTURE(spec.name);
      const std::string entry = "--" + std::string(spec.name) + (spec.metavar.empty() ? "\n" : "=");
      CHECK((help.find("  " + entry) != std::string::npos ||
             help.find(", " + entry) != std::string::npos) == ExistsFor(spec, program));
    }
    CHECK(help.find("\nRendezvous:\n") != std::string::npos);
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) {
      CHECK(line.size() <= 80);
    }
  }
}

TEST_CASE("the committed documents are what the table yields; ddprun-docgen makes them again") {
  const std::vector<std::string> programs{"ddprun", "ddprun-launch"};
  CHECK(ReadAll(kRoot + "docs/man/ddprun.1") == ManualPage());
  CHECK(ReadAll(kRoot + "docs/options.md") == OptionsMarkdown());
  const std::string completions = kRoot + "launcher/packaging/completions/";
  CHECK(ReadAll(completions + "ddprun.bash") == CompletionScript(Shell::kBash, programs));
  CHECK(ReadAll(completions + "_ddprun") == CompletionScript(Shell::kZsh, programs));
  CHECK(ReadAll(completions + "ddprun.fish") == CompletionScript(Shell::kFish, programs));
}

TEST_CASE("every completion script knows every option") {
  for (const Shell shell : {Shell::kBash, Shell::kZsh, Shell::kFish, Shell::kTcsh}) {
    const std::string script = CompletionScript(shell, {"ddprun-launch"});
    for (const OptionSpec& spec : OptionTable()) {
      CAPTURE(spec.name);
      CHECK(script.find(spec.name) != std::string::npos);
    }
    CHECK(script.find("ddprun-launch") != std::string::npos);
  }
  CHECK(CompletionScript(Shell::kBash, {"ddprun"}).find("--use-env") == std::string::npos);
}

}  // namespace
}  // namespace ddprun
