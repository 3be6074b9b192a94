#pragma once

// Where an interpreter keeps its packages, found without starting it: the launcher must not wait
// for Python. Reads folders and small files on the caller's thread.

#include <optional>
#include <string>
#include <vector>

#include "launcher/script/path_search.h"

namespace ddprun {

// The folders in which `import` looks after the script's own, in order: $PYTHONPATH, then
// site-packages of the virtual environment, of the user, of the installation (Debian's
// dist-packages too). Only folders that exist; empty when the interpreter's layout is not known (a
// shim, say).
std::vector<std::string> PackageFolders(const std::string& interpreter,
                                        const EnvironmentLookup& environment);

// The version of the first torch in these folders, by torch/version.py or the name of its
// dist-info; nullopt when there is none to be seen.
std::optional<std::string> FindTorchVersion(const std::vector<std::string>& folders);

// The number in front of the first dot: 2 of "2.15.0+cpu".
std::optional<int> MajorVersion(const std::string& version);

}  // namespace ddprun
