#pragma once

// The text of what the workers will run, and what it declares. Reads files on the caller's thread;
// never starts Python.

#include <string>
#include <vector>

#include "launcher/script/local_rank_scan.h"
#include "launcher/script/worker_command.h"
#include "rendezvous/base/error.h"

namespace ddprun {

// The files that a target executes as its main program: the script itself; __main__.py of a folder;
// of `-m a.b` the package's __main__.py and __init__.py, or a/b.py. Modules are looked for in the
// working directory and then in `module_folders` (python_installation.h). Empty when there is
// nothing to read: a program, a zip file, a module that is not found.
std::vector<std::string> FindMainFiles(const WorkerTarget& target,
                                       const std::vector<std::string>& module_folders);

// At most kMaxPythonSourceBytes and one byte; regular files only, because reading a pipe would take
// its contents away from the worker.
Expected<std::string> ReadPythonFile(const std::string& path);

struct ScannedScript {
  std::string
      file;  // The one that declares the argument, else the first; empty when none was read.
  LocalRankScan scan;
};

// Reads and scans the main files. What cannot be read declares nothing: script_check.h says why.
ScannedScript ScanTarget(const WorkerTarget& target,
                         const std::vector<std::string>& module_folders);

}  // namespace ddprun
