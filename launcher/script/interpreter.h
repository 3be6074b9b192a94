#pragma once

// Which Python runs the training script. ddprun is no Python program, so it has to choose; the
// choice is printed once at the start. System calls on the caller's thread.

#include <optional>
#include <string>
#include <string_view>

#include "launcher/script/path_search.h"
#include "rendezvous/base/error.h"

namespace ddprun {

enum class InterpreterSource {
  kPythonExec,     // $PYTHON_EXEC, as torchrun.
  kOption,         // --python.
  kVirtualEnv,     // $VIRTUAL_ENV/bin: the active virtual environment.
  kCondaEnv,       // $CONDA_PREFIX/bin: the active conda environment, unless it is the base.
  kBesideProgram,  // The folder of the ddprun binary: a wheel in an environment that is not active.
  kPathPython3,
  kPathPython,
};

struct Interpreter {
  std::string path;  // As it is executed; $PYTHON_EXEC and --python stay as written.
  InterpreterSource source = InterpreterSource::kPathPython3;
};

struct InterpreterQuery {
  std::optional<std::string> option;  // --python
  std::string program;                // Path of the ddprun binary; empty when it is not known.
  EnvironmentLookup environment;
};

// The first usable one in the order of InterpreterSource. $PYTHON_EXEC and --python are orders:
// when one of them cannot be executed that is the error, and nothing else is tried. An empty
// variable counts as not set.
//
// conda's base environment is skipped because many shells activate it always: where its `python3`
// is wanted, PATH finds it, and it must not win over the environment that ddprun is installed in.
// For the same reason a ddprun in a system folder (/bin, /usr/bin, /usr/local/bin) leaves the
// choice to PATH.
Expected<Interpreter> ChooseInterpreter(const InterpreterQuery& query);

// "active virtual environment", for the line that names the interpreter.
std::string_view ToString(InterpreterSource source);

}  // namespace ddprun
