#include "launcher/script/interpreter.h"

#include "tests/support/catch.h"
#include "tests/unit/script/test_folder.h"

namespace ddprun {
namespace {

using Source = InterpreterSource;

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("each place wins over those behind it") {
  const TestFolder folder;
  Variables variables{{"PYTHON_EXEC", folder.Program("exec/py")},
                      {"VIRTUAL_ENV", folder.path("venv")},
                      {"CONDA_PREFIX", folder.path("conda")},
                      {"CONDA_DEFAULT_ENV", "train"},
                      {"PATH", folder.path("a") + ":" + folder.path("b")}};
  InterpreterQuery query{folder.Program("option/py"), folder.Program("wheel/bin/ddprun"), {}};
  folder.Program("venv/bin/python");
  folder.Program("conda/bin/python");
  folder.Program("wheel/bin/python3");
  folder.Program("a/python");
  folder.Program("b/python3");
  const auto choose = [&] {
    query.environment = Environment(variables);
    const Expected<Interpreter> chosen = ChooseInterpreter(query);
    REQUIRE(chosen.has_value());
    return *chosen;
  };
  CHECK(choose().path == folder.path("exec/py"));
  CHECK(choose().source == Source::kPythonExec);
  variables["PYTHON_EXEC"] = "";
  CHECK(choose().path == folder.path("option/py"));
  CHECK(choose().source == Source::kOption);
  query.option.reset();
  CHECK(choose().path == folder.path("venv/bin/python"));
  CHECK(choose().source == Source::kVirtualEnv);
  variables.erase("VIRTUAL_ENV");
  CHECK(choose().path == folder.path("conda/bin/python"));
  CHECK(choose().source == Source::kCondaEnv);
  variables["CONDA_DEFAULT_ENV"] = "base";
  CHECK(choose().path == folder.path("wheel/bin/python3"));
  CHECK(choose().source == Source::kBesideProgram);
  query.program.clear();
  CHECK(choose().path == folder.path("b/python3"));
  CHECK(choose().source == Source::kPathPython3);
  std::filesystem::remove(folder.path("b/python3"));
  CHECK(choose().path == folder.path("a/python"));
  CHECK(choose().source == Source::kPathPython);
}

TEST_CASE("an order stays as it is written, because exec searches PATH itself") {
  const TestFolder folder;
  folder.Program("bin/pypy3");
  const auto environment = Environment({{"PYTHON_EXEC", "pypy3"}, {"PATH", folder.path("bin")}});
  CHECK(ChooseInterpreter({std::nullopt, "", environment})->path == "pypy3");
}

TEST_CASE("an order that cannot be executed is an error and nothing else is tried") {
  const TestFolder folder;
  folder.Program("bin/python3");
  folder.Write("bin/plain", "x", 0644);
  const auto message = [&](const std::string& name, bool option) {
    Variables variables{{"PATH", folder.path("bin")}};
    InterpreterQuery query;
    if (option) {
      query.option = name;
    } else {
      variables["PYTHON_EXEC"] = name;
    }
    query.environment = Environment(variables);
    const Expected<Interpreter> chosen = ChooseInterpreter(query);
    REQUIRE_FALSE(chosen.has_value());
    return chosen.error().message;
  };
  CHECK(message("nosuch", false) == "PYTHON_EXEC=nosuch: not found in PATH");
  CHECK(message("./nosuch", true) == "--python=./nosuch: there is no such file");
  CHECK(message("./bin", true) == "--python=./bin: is a folder, not an interpreter");
  CHECK(Holds(message("plain", true), "is not executable"));
  CHECK(Holds(message("bin/plain", false), "'bin/plain' is not executable"));
}

TEST_CASE("environments without an interpreter are passed over") {
  const TestFolder folder;
  folder.Write("venv/bin/python", "not executable", 0644);
  folder.Program("venv/bin/python3");
  folder.Program("path/python3");
  std::filesystem::create_directories(folder.path("empty/bin/python"));
  CHECK(ChooseInterpreter({std::nullopt, "", Environment({{"VIRTUAL_ENV", folder.path("venv")}})})
            ->path == folder.path("venv/bin/python3"));
  const auto stale = Environment({{"VIRTUAL_ENV", folder.path("gone")},
                                  {"CONDA_PREFIX", folder.path("empty")},
                                  {"PATH", folder.path("path")}});
  CHECK(ChooseInterpreter({std::nullopt, "", stale})->path == folder.path("path/python3"));
}

TEST_CASE("a ddprun in a system folder leaves the choice to PATH") {
  const TestFolder folder;
  folder.Program("first/python3");
  const auto environment = Environment({{"PATH", folder.path("first") + ":/usr/bin"}});
  CHECK(ChooseInterpreter({std::nullopt, "/usr/bin/ddprun", environment})->path ==
        folder.path("first/python3"));
}

TEST_CASE("when nothing is found the error lists what was tried") {
  const TestFolder folder;
  const auto environment =
      Environment({{"VIRTUAL_ENV", folder.path("venv")}, {"PATH", folder.path("none")}});
  const auto chosen = ChooseInterpreter({std::nullopt, folder.path("bin/ddprun"), environment});
  REQUIRE_FALSE(chosen.has_value());
  for (const std::string& part :
       {folder.path("venv/bin/python"), folder.path("bin/python3"), std::string("python3 in PATH"),
        std::string("python in PATH"), std::string("--python")}) {
    CHECK(Holds(chosen.error().message, part));
  }
}

TEST_CASE("programs are found as exec finds them") {
  const TestFolder folder;
  folder.Write("a/tool", "x", 0644);
  folder.Program("b/tool");
  folder.Program("here");
  std::filesystem::create_directories(folder.path("a/folder"));
  const auto search = [&](const std::string& name, Variables variables) {
    return FindProgram(name, Environment(std::move(variables)));
  };
  const std::string path = folder.path("a") + ":" + folder.path("b");
  CHECK(search("tool", {{"PATH", path}}).path == folder.path("b/tool"));
  CHECK(search("tool", {{"PATH", folder.path("a")}}).not_executable == folder.path("a/tool"));
  CHECK_FALSE(search("folder", {{"PATH", path}}).path);
  CHECK_FALSE(search("folder", {{"PATH", path}}).not_executable);
  CHECK(search("here", {{"PATH", "/nosuch:"}}).path == "./here");
  CHECK_FALSE(search("here", {{"PATH", "/nosuch"}}).path);
  CHECK(search("./here", {}).path == "./here");
  CHECK(search("sh", {}).path == "/bin/sh");
  CHECK_FALSE(search("", {{"PATH", path}}).path);
}

}  // namespace
}  // namespace ddprun
