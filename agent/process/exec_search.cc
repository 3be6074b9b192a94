#include "agent/process/exec_search.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "agent/process/unique_fd.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

constexpr std::string_view kDefaultPath = "/bin:/usr/bin";  // As Python's os.defpath.
constexpr std::size_t kShebangLimit = 256;                  // BINPRM_BUF_SIZE of the kernel.

std::string_view SearchPath(const std::vector<std::string>& environment) {
  constexpr std::string_view kName = "PATH=";
  for (const std::string& variable : environment) {
    if (std::string_view(variable).starts_with(kName)) {
      return std::string_view(variable).substr(kName.size());
    }
  }
  return kDefaultPath;
}

std::string ReadStart(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  std::array<char, kShebangLimit> buffer = {};
  const ssize_t size = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
  return std::string(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
}

// The program named in a "#!" line; empty when there is no such line.
std::string Interpreter(const std::string& path) {
  const std::string start = ReadStart(path);
  if (!start.starts_with("#!")) {
    return {};
  }
  const std::string_view line = Trim(std::string_view(start).substr(2, start.find('\n') - 2));
  return std::string(line.substr(0, line.find_first_of(" \t\r")));
}

std::string ExplainMissing(const std::string& path, bool searched) {
  if (::access(path.c_str(), F_OK) != 0) {
    return searched ? "it is in no folder of the worker's PATH" : "";
  }
  const std::string interpreter = Interpreter(path);
  if (interpreter.empty()) {
    return "the file exists, but the loader that it was built for does not";
  }
  const bool carriage_return = ReadStart(path).find('\r') != std::string::npos;
  return fmt::format("the file exists, but '{}' of its first line does not{}", interpreter,
                     carriage_return ? "; the line ends with a carriage return" : "");
}

std::string ExplainDenied(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) {
    return "a folder on the way to it may not be searched";
  }
  if (S_ISDIR(status.st_mode)) {
    return "it is a directory";
  }
  if (!S_ISREG(status.st_mode)) {
    return "it is not a regular file";
  }
  if (::access(path.c_str(), X_OK) != 0) {
    return "the file is not executable: use chmod +x, or name its interpreter first";
  }
  const std::string interpreter = Interpreter(path);
  if (!interpreter.empty()) {
    return fmt::format("'{}' of its first line may not be executed", interpreter);
  }
  return "its file system may be mounted noexec";
}

std::string ExplainFormat(const std::string& path) {
  const std::string start = ReadStart(path);
  if (start.empty()) {
    return "the file is empty or not readable";
  }
  if (start.starts_with("\x7f"
                        "ELF")) {
    return "it is a program for another kind of machine";
  }
  return "it has no '#!' line: write one, or name its interpreter first";
}

}  // namespace

std::vector<std::string> ExecCandidates(const std::string& name,
                                        const std::vector<std::string>& environment) {
  if (name.empty() || name.find('/') != std::string::npos) {
    return {name};
  }
  std::vector<std::string> candidates;
  for (const std::string& folder : Split(SearchPath(environment), ':')) {
    const bool slash = folder.empty() || folder.back() == '/';
    candidates.push_back(fmt::format("{}{}{}", folder, slash ? "" : "/", name));
  }
  return candidates;
}

std::string ExplainExecFailure(const std::string& path, int errno_value, bool searched) {
  switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
      return ExplainMissing(path, searched);
    case EACCES:
      return ExplainDenied(path);
    case ENOEXEC:
      return ExplainFormat(path);
    case E2BIG:
      return "the arguments and the environment are too large together, or one of them is over 128 "
             "KiB";
    case ETXTBSY:
      return "somebody has the file open for writing";
    default:
      return {};
  }
}

}  // namespace ddprun
