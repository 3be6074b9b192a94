#include "launcher/script/script_source.h"

#include <sys/stat.h>

#include "launcher/script/python_installation.h"
#include "launcher/script/python_tokens.h"
#include "tests/support/catch.h"
#include "tests/unit/script/test_folder.h"

namespace ddprun {
namespace {

using Files = std::vector<std::string>;
using Kind = WorkerTarget::Kind;

const std::string kDeclaring = "p.add_argument('--local_rank')\n";

Files Find(Kind kind, const std::string& name, const Files& folders = {}) {
  return FindMainFiles(WorkerTarget{kind, name, {}}, folders);
}

TEST_CASE("the main file of a script or folder is found, with its template filled in") {
  const TestFolder folder;
  folder.Write("train.py", "");
  folder.Write("app/__main__.py", "");
  folder.Write("w0.py", "");
  CHECK(Find(Kind::kScript, "train.py") == Files{"train.py"});
  CHECK(Find(Kind::kRunPath, "app") == Files{"app/__main__.py"});
  CHECK(Find(Kind::kScript, "w${local_rank}.py") == Files{"w0.py"});
  CHECK(Find(Kind::kScript, "nosuch.py").empty());
  CHECK(Find(Kind::kProgram, "train.py").empty());
}

TEST_CASE("a module's files are found as Python's import orders them") {
  const TestFolder folder;
  folder.Write("pkg/__init__.py", "");
  folder.Write("pkg/__main__.py", "");
  folder.Write("pkg.py", "");
  folder.Write("pkg/sub/main.py", "");
  folder.Write("space/__main__.py", "");
  folder.Write("site/other/__init__.py", "");
  folder.Write("site/space/__init__.py", "");
  CHECK(Find(Kind::kModule, "pkg") == Files{"pkg/__main__.py", "pkg/__init__.py"});
  CHECK(Find(Kind::kModule, "pkg.sub.main") == Files{"pkg/sub/main.py"});
  CHECK(Find(Kind::kModule, "space") == Files{"space/__main__.py"});
  CHECK(Find(Kind::kModule, "other", {folder.path("none"), folder.path("site")}) ==
        Files{folder.path("site/other/__init__.py")});
  for (const char* name : {"nosuch", "", ".", "pkg.", "..pkg", "pkg/sub/main", "1pkg", "../pkg"}) {
    CAPTURE(name);
    CHECK(Find(Kind::kModule, name).empty());
  }
}

TEST_CASE("the file that declares the argument is named") {
  const TestFolder folder;
  folder.Write("pkg/__init__.py", kDeclaring);
  folder.Write("pkg/__main__.py", "from . import main\n");
  const ScannedScript scanned = ScanTarget(WorkerTarget{Kind::kModule, "pkg", {}}, {});
  CHECK(scanned.file == "pkg/__init__.py");
  CHECK(scanned.scan.Declares("--local_rank"));
  folder.Write("train.py", "x = 1\n");
  CHECK(ScanTarget(WorkerTarget{Kind::kScript, "train.py", {}}, {}).file == "train.py");
  CHECK_FALSE(ScanTarget(WorkerTarget{Kind::kScript, "train.py", {}}, {}).scan.declared());
}

TEST_CASE("zip files, pipes and what is missing declare nothing and are not waited for") {
  const TestFolder folder;
  folder.Write("app.zip", std::string("PK\3\4\0", 5) + kDeclaring);
  REQUIRE(::mkfifo(folder.path("pipe").c_str(), 0600) == 0);
  for (const char* name : {"app.zip", "pipe", "nosuch"}) {
    CAPTURE(name);
    CHECK_FALSE(ScanTarget(WorkerTarget{Kind::kScript, name, {}}, {}).scan.declared());
  }
  CHECK_FALSE(ReadPythonFile(folder.path("pipe")).has_value());
  CHECK(ReadPythonFile(folder.path("nosuch")).error().code == ErrorCode::kNotFound);
}

TEST_CASE("a large file is read up to one byte behind the limit") {
  const TestFolder folder;
  folder.Write("big.py", kDeclaring + std::string(kMaxPythonSourceBytes + 4096, '#'));
  CHECK(ReadPythonFile("big.py")->size() == kMaxPythonSourceBytes + 1);
  const ScannedScript scanned = ScanTarget(WorkerTarget{Kind::kScript, "big.py", {}}, {});
  CHECK(scanned.scan.declared());
  CHECK_FALSE(scanned.scan.complete);
}

TEST_CASE("torch's version is read from a virtual environment without starting it") {
  const TestFolder folder;
  const std::string python = folder.Program("venv/bin/python");
  folder.Write("venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
  folder.Write("venv/lib/python3.11/site-packages/torch/version.py",
               "from typing import Optional\n__all__ = ['__version__']\n"
               "__version__ = '2.15.0+cpu'\ndebug = False\n");
  const Files folders = PackageFolders(python, Environment({{"HOME", folder.path("home")}}));
  CHECK(folders == Files{folder.path("venv/lib/python3.11/site-packages")});
  CHECK(FindTorchVersion(folders) == "2.15.0+cpu");
  CHECK(MajorVersion("2.15.0+cpu") == 2);
}

TEST_CASE("an installation outside an environment has its users', its own and Debian's folders") {
  const TestFolder folder;
  const std::string real = folder.Program("usr/bin/python3.11");
  std::filesystem::create_symlink(real, folder.path("usr/bin/python3"));
  folder.Write("usr/lib/python3/dist-packages/torch/version.py", "__version__ = \"1.13.1\"\n");
  folder.Write("usr/lib/python3.9/site-packages/x", "");
  folder.Write("home/.local/lib/python3.11/site-packages/x", "");
  folder.Write("extra/torch-1.8.0.dist-info/METADATA", "");
  Variables variables{{"HOME", folder.path("home")}};
  const auto folders = [&] {
    return PackageFolders(folder.path("usr/bin/python3"), Environment(variables));
  };
  const std::string user = folder.path("home/.local/lib/python3.11/site-packages");
  const std::string debian = folder.path("usr/lib/python3/dist-packages");
  CHECK(folders() == Files{user, debian});
  CHECK(FindTorchVersion(folders()) == "1.13.1");
  variables["PYTHONNOUSERSITE"] = "1";
  CHECK(folders() == Files{debian});
  variables["PYTHONPATH"] = ":" + folder.path("extra") + ":/nosuch";
  CHECK(folders() == Files{folder.path("extra"), debian});
  CHECK(FindTorchVersion(folders()) == "1.8.0");
}

TEST_CASE("a version that cannot be seen is not guessed") {
  const TestFolder folder;
  folder.Write("a/torch/version.py", "version = 1\n");
  folder.Write("b/torch-x.dist-info/METADATA", "");
  folder.Write("c/torch-2.4.1-py3.10.egg-info", "");
  CHECK_FALSE(FindTorchVersion({folder.path("a"), folder.path("b"), "/nosuch"}));
  CHECK(FindTorchVersion({folder.path("a"), folder.path("c")}) == "2.4.1");
  CHECK(PackageFolders(folder.path("no/python"), Environment({})).empty());
  for (const char* text : {"", "x.1", "-1.0", "1000.0", "2a.1"}) {
    CHECK_FALSE(MajorVersion(text).has_value());
  }
  CHECK(MajorVersion("2") == 2);
}

}  // namespace
}  // namespace ddprun
