#pragma once

// How execvp(3) finds a program, without starting it. System calls on the caller's thread.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ddprun {

// Reads one variable of the environment that matters; nullopt when it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(std::string_view)>;

struct ProgramSearch {
  std::optional<std::string> path;            // The file that exec would run.
  std::optional<std::string> not_executable;  // Else: the first one of that name without the right.
};

// A name with a slash is taken as it is; any other is looked for in PATH (its default,
// /bin:/usr/bin, when the variable is not set; an empty entry is the working directory).
ProgramSearch FindProgram(std::string_view name, const EnvironmentLookup& environment);

// A regular file that this process may execute.
bool IsExecutableFile(const std::string& path);

bool FileExists(const std::string& path);
bool IsDirectory(const std::string& path);

}  // namespace ddprun
