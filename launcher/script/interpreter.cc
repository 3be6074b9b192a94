#include "launcher/script/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

class Chooser {
 public:
  explicit Chooser(const InterpreterQuery& query) : query_(query) {}

  Expected<Interpreter> Choose() {
    if (const auto ordered = Variable("PYTHON_EXEC")) {
      return Ordered("PYTHON_EXEC", *ordered, InterpreterSource::kPythonExec);
    }
    if (query_.option) {
      return Ordered("--python", *query_.option, InterpreterSource::kOption);
    }
    for (const auto step :
         {&Chooser::VirtualEnv, &Chooser::CondaEnv, &Chooser::BesideProgram, &Chooser::InPath}) {
      if (const auto found = (this->*step)()) {
        return *found;
      }
    }
    return Fail(ErrorCode::kNotFound,
                fmt::format("no Python interpreter found (tried {}); name one with --python or "
                            "PYTHON_EXEC",
                            Join(tried_, ", ")));
  }

 private:
  std::optional<std::string> Variable(std::string_view name) const {
    auto value = query_.environment(name);
    return value && !value->empty() ? value : std::nullopt;
  }

  Expected<Interpreter> Ordered(std::string_view by, const std::string& name,
                                InterpreterSource source) {
    const ProgramSearch search = FindProgram(name, query_.environment);
    if (search.path) {
      return Interpreter{name, source};
    }
    if (search.not_executable) {
      return Fail(ErrorCode::kPermissionDenied,
                  fmt::format("{}={}: '{}' is not executable", by, name, *search.not_executable));
    }
    const bool path = name.find('/') != std::string::npos;
    const std::string_view why = IsDirectory(name) && path ? "is a folder, not an interpreter"
                                 : path                    ? "there is no such file"
                                                           : "not found in PATH";
    return Fail(ErrorCode::kNotFound, fmt::format("{}={}: {}", by, name, why));
  }

  // The first of the two names in a folder.
  std::optional<Interpreter> InFolder(const std::string& folder, InterpreterSource source,
                                      std::array<std::string_view, 2> names) {
    for (const std::string_view name : names) {
      std::string path = fmt::format("{}/{}", folder, name);
      if (IsExecutableFile(path)) {
        return Interpreter{std::move(path), source};
      }
      tried_.push_back(std::move(path));
    }
    return std::nullopt;
  }

  std::optional<Interpreter> VirtualEnv() {
    const auto prefix = Variable("VIRTUAL_ENV");
    return prefix
               ? InFolder(*prefix + "/bin", InterpreterSource::kVirtualEnv, {"python", "python3"})
               : std::nullopt;
  }

  std::optional<Interpreter> CondaEnv() {
    const auto prefix = Variable("CONDA_PREFIX");
    const std::string name = Variable("CONDA_DEFAULT_ENV").value_or("");
    if (!prefix || name == "base" || name == "root") {
      return std::nullopt;
    }
    return InFolder(*prefix + "/bin", InterpreterSource::kCondaEnv, {"python", "python3"});
  }

  std::optional<Interpreter> BesideProgram() {
    static constexpr std::array<std::string_view, 4> kSystem = {"/bin", "/usr/bin",
                                                                "/usr/local/bin", "/usr/sbin"};
    const std::size_t slash = query_.program.rfind('/');
    if (slash == std::string::npos) {
      return std::nullopt;
    }
    const std::string folder = query_.program.substr(0, slash);
    if (folder.empty() || std::find(kSystem.begin(), kSystem.end(), folder) != kSystem.end()) {
      return std::nullopt;
    }
    return InFolder(folder, InterpreterSource::kBesideProgram, {"python3", "python"});
  }

  std::optional<Interpreter> InPath() {
    for (const std::string_view name : {"python3", "python"}) {
      const ProgramSearch search = FindProgram(name, query_.environment);
      if (search.path) {
        return Interpreter{*search.path, name == "python3" ? InterpreterSource::kPathPython3
                                                           : InterpreterSource::kPathPython};
      }
      tried_.push_back(fmt::format("{} in PATH", name));
    }
    return std::nullopt;
  }

  const InterpreterQuery& query_;
  std::vector<std::string> tried_;
};

}  // namespace

Expected<Interpreter> ChooseInterpreter(const InterpreterQuery& query) {
  return Chooser(query).Choose();
}

std::string_view ToString(InterpreterSource source) {
  switch (source) {
    case InterpreterSource::kPythonExec:
      return "PYTHON_EXEC";
    case InterpreterSource::kOption:
      return "--python";
    case InterpreterSource::kVirtualEnv:
      return "active virtual environment";
    case InterpreterSource::kCondaEnv:
      return "active conda environment";
    case InterpreterSource::kBesideProgram:
      return "beside ddprun";
    case InterpreterSource::kPathPython3:
      return "python3 in PATH";
    case InterpreterSource::kPathPython:
      return "python in PATH";
  }
  return "unknown";
}

}  // namespace ddprun
