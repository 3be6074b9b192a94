#pragma once

// WorkerSpec: the blueprint from which one worker is started, and the log files it writes. Values
// only; the spawner turns them into a process, the log pump into open files.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddprun {

// Where one standard stream of a worker goes.
struct StreamPlan {
  enum class Route {
    kInherit,  // The launcher's own stream, untouched.
    kNull,     // /dev/null: a rank outside --local-ranks-filter.
    kFile,     // Straight into `file`.
    kTee,      // Through the launcher into `file`, and line by line with `prefix` to the console.
  };

  Route route = Route::kInherit;
  std::string file;    // kFile, kTee: absolute path; its directory exists before the spawn.
  std::string prefix;  // kTee: put in front of every line on the console.
};

struct WorkerSpec {
  std::uint32_t local_rank = 0;
  std::uint32_t global_rank = 0;
  std::vector<std::string> argv;         // argv[0] is searched in PATH unless it holds a slash.
  std::vector<std::string> environment;  // "NAME=value", complete.
  bool null_stdin = false;               // True: /dev/null instead of the launcher's stdin.
  bool new_session = true;               // False only for --run-path, as in torch.
  StreamPlan out;
  StreamPlan err;
  std::string error_file;  // TORCHELASTIC_ERROR_FILE; empty when there is none.
};

}  // namespace ddprun
