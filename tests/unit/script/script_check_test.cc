#include "launcher/script/script_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/unit/script/test_folder.h"

namespace ddprun {
namespace {

using Kind = WorkerTarget::Kind;

// The error's text; empty when the target passes.
std::string Check(Kind kind, const std::string& name, const std::string& path = "/usr/bin:/bin",
                  std::uint32_t workers = 1) {
  const auto checked =
      CheckTarget(WorkerTarget{kind, name, {}}, workers, Environment({{"PATH", path}}));
  return checked ? std::string() : checked.error().message;
}

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Root may read everything: as somebody else for one check.
class AsNobody {
 public:
  AsNobody() : root_(::geteuid() == 0) {
    if (root_ && ::seteuid(65534) != 0) {
      root_ = false;
    }
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  ~AsNobody() {
    if (root_ && ::seteuid(0) != 0) {
      ::abort();
    }
  }

 private:
  bool root_;
};

TEST_CASE("scripts that Python can run pass") {
  const TestFolder folder;
  folder.Write("train.py", "x = 1\n");
  folder.Write("noext", "#!/bin/sh\n");
  folder.Write("app/__main__.py", "");
  folder.Write("app.zip", "PK\3\4");
  REQUIRE(::mkfifo("pipe", 0600) == 0);
  for (const char* name :
       {"train.py", "noext", "app", "app/", "app.zip", "pipe", "-", "./train.py"}) {
    CAPTURE(name);
    CHECK(Check(Kind::kScript, name).empty());
    CHECK(Check(Kind::kRunPath, name).empty());
  }
}

TEST_CASE("a script that does not exist is said with the nearest name") {
  const TestFolder folder;
  folder.Write("train.py", "");
  folder.Write("sub/evaluate.py", "");
  CHECK(Check(Kind::kScript, "trian.py") ==
        "script 'trian.py' does not exist; did you mean 'train.py'?");
  CHECK(Check(Kind::kScript, "train") == "script 'train' does not exist; did you mean 'train.py'?");
  CHECK(Check(Kind::kScript, "sub/evalute.py") ==
        "script 'sub/evalute.py' does not exist; did you mean 'sub/evaluate.py'?");
  CHECK(Check(Kind::kScript, "zzzzzzzz.py") == "script 'zzzzzzzz.py' does not exist");
  CHECK(Check(Kind::kScript, "train.py/x") == "script 'train.py/x' does not exist");
  CHECK(Check(Kind::kScript, "nosuch/x.py") == "script 'nosuch/x.py' does not exist");
  CHECK_FALSE(Check(Kind::kScript, "").empty());
}

TEST_CASE("a dotted name is told about -m") {
  const TestFolder folder;
  folder.Write("pkg/sub/main.py", "");
  CHECK(Check(Kind::kScript, "pkg.sub.main") ==
        "script 'pkg.sub.main' does not exist, but looks like a module: run it with -m "
        "pkg.sub.main");
  CHECK(Holds(Check(Kind::kScript, "torch.utils.bottleneck"), "-m torch.utils.bottleneck"));
  for (const char* name : {"../pkg", "a..b", "a.b.py", "dir/a.b", ".hidden", "a b.c"}) {
    CAPTURE(name);
    CHECK_FALSE(Holds(Check(Kind::kScript, name), "-m"));
  }
}

TEST_CASE("folders, compiled programs and unreadable files are no scripts") {
  const TestFolder folder;
  std::filesystem::create_directories("empty");
  folder.Write("elf",
               std::string("\x7f"
                           "ELF\2\1\1\0",
                           8),
               0755);
  folder.Write("secret.py", "x = 1\n", 0000);
  folder.Write("locked/train.py", "x = 1\n");
  ::chmod(".", 0755);
  CHECK(Check(Kind::kScript, "empty") ==
        "script 'empty' is a folder without a __main__.py: name the file to run");
  CHECK(Check(Kind::kScript, "elf") ==
        "script 'elf' is a compiled program, not Python: use --no-python");
  ::chmod("locked", 0000);
  {
    const AsNobody nobody;
    CHECK(Check(Kind::kScript, "secret.py") ==
          "script 'secret.py' cannot be read: permission denied");
    CHECK(Check(Kind::kScript, "locked/train.py") ==
          "script 'locked/train.py' cannot be read: permission denied");
  }
  ::chmod("locked", 0755);
}

TEST_CASE("a name with a template is checked for each worker") {
  const TestFolder folder;
  folder.Write("w0.py", "");
  folder.Write("w1.py", "");
  CHECK(Check(Kind::kScript, "w${local_rank}.py", "/bin", 2).empty());
  CHECK(
      Holds(Check(Kind::kScript, "w${local_rank}.py", "/bin", 3), "script 'w2.py' does not exist"));
}

TEST_CASE("with -m a file's name is told the module's") {
  const TestFolder folder;
  folder.Write("train.py", "");
  CHECK(Check(Kind::kModule, "train").empty());
  CHECK(Check(Kind::kModule, "not.there").empty());
  CHECK(Check(Kind::kModule, "x.py").empty());
  CHECK(
      Check(Kind::kModule, "train.py") ==
      "-m: 'train.py' is a file's name; a module's name is accepted, such as 'train', or leave -m "
      "out");
  CHECK(Holds(Check(Kind::kModule, "./pkg/main.py"), "'pkg.main'"));
  CHECK_FALSE(Check(Kind::kModule, "").empty());
}

TEST_CASE("programs that exec can run pass") {
  const TestFolder folder;
  folder.Program("tool");
  folder.Write("by_env", "#!/usr/bin/env -S X=1 sh\n", 0755);
  folder.Write("binary", std::string("\0\1\2", 3), 0755);
  folder.Write("empty", "", 0755);
  for (const char* name : {"sh", "./tool", "./by_env", "./binary", "./empty"}) {
    CAPTURE(name);
    CHECK(Check(Kind::kProgram, name).empty());
  }
  CHECK(Check(Kind::kProgram, "tool", folder.path("")).empty());
}

TEST_CASE("programs that exec cannot run are said, each with its reason") {
  const TestFolder folder;
  folder.Write("plain.sh", "#!/bin/sh\n", 0644);
  folder.Program("tool");
  folder.Write("noline", "echo hello\n", 0755);
  folder.Write("crlf", "#!/bin/sh\r\necho\r\n", 0755);
  folder.Write("lost", "#!/no/such/python3 -u\n", 0755);
  folder.Write("lost_env", "#!/usr/bin/env nosuchprogram\n", 0755);
  folder.Write("bare", "#!\n", 0755);
  std::filesystem::create_directories("folder");
  const auto check = [&](const char* name) { return Check(Kind::kProgram, name); };
  CHECK(check("nosuchcmd") == "--no-python: program 'nosuchcmd' is not found in PATH");
  CHECK(check("./nosuchcmd") == "--no-python: program './nosuchcmd' does not exist");
  CHECK(check("tool") ==
        "--no-python: program 'tool' is not found in PATH; the file in this folder is './tool'");
  CHECK(check("./plain.sh") ==
        "--no-python: './plain.sh' is not executable; run chmod +x on it, or start it by its "
        "interpreter (bash ./plain.sh)");
  CHECK(check("./folder") == "--no-python: './folder' is a folder, not a program");
  CHECK(Holds(check("./noline"), "'./noline' is a text without a #! line"));
  CHECK(Holds(check("./crlf"), "carriage return"));
  CHECK(Holds(check("./lost"), "'/no/such/python3'"));
  CHECK(Holds(check("./lost_env"), "'nosuchprogram'"));
  CHECK(Holds(check("./bare"), "cannot be executed"));
  CHECK_FALSE(check("").empty());
}

}  // namespace
}  // namespace ddprun
