#include "launcher/script/path_search.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

std::optional<mode_t> ModeOf(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? std::optional<mode_t>(status.st_mode) : std::nullopt;
}

// Keeps the first file that fits; true when the search is over.
bool Take(const std::string& path, ProgramSearch& search) {
  if (IsExecutableFile(path)) {
    search.path = path;
  } else if (!search.not_executable && FileExists(path) && !IsDirectory(path)) {
    search.not_executable = path;
  }
  return search.path.has_value();
}

}  // namespace

bool FileExists(const std::string& path) {
  return ModeOf(path).has_value();
}

bool IsDirectory(const std::string& path) {
  const std::optional<mode_t> mode = ModeOf(path);
  return mode && S_ISDIR(*mode);
}

// AT_EACCESS: exec judges by the effective ids, access(2) by the real ones.
bool IsExecutableFile(const std::string& path) {
  const std::optional<mode_t> mode = ModeOf(path);
  return mode && S_ISREG(*mode) && ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0;
}

ProgramSearch FindProgram(std::string_view name, const EnvironmentLookup& environment) {
  ProgramSearch search;
  if (name.empty()) {
    return search;
  }
  if (name.find('/') != std::string_view::npos) {
    Take(std::string(name), search);
    return search;
  }
  for (const std::string& folder : Split(environment("PATH").value_or("/bin:/usr/bin"), ':')) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + std::string(name);
    if (Take(path, search)) {
      break;
    }
  }
  return search;
}

}  // namespace ddprun
