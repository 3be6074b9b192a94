#pragma once

// What can be known to be wrong with the script before any worker is started: one sentence instead
// of a Python error per rank. System calls on the caller's thread; never starts anything, never
// reads from a pipe.

#include <cstdint>

#include "launcher/script/path_search.h"
#include "launcher/script/worker_command.h"
#include "rendezvous/base/error.h"

namespace ddprun {

// Checks the target for every local rank in [0, local_world_size), whose scripts may differ when
// the name holds ${local_rank}.
//
// Script, --run-path: the file exists and can be read; a folder holds __main__.py; it is no
// compiled program; a dotted name is told about -m. `-` (standard input) and pipes pass. -m: a file
// name or path is told the module's name. Whether a module exists only Python can say.
// --no-python: found in PATH as execvp does, executable, no folder, has a #! line whose interpreter
// exists, unless it is a binary.
Expected<void> CheckTarget(const WorkerTarget& target, std::uint32_t local_world_size,
                           const EnvironmentLookup& environment);

}  // namespace ddprun
