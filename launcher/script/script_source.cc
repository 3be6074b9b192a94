#include "launcher/script/script_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "launcher/script/path_search.h"
#include "launcher/script/python_tokens.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

// Closes on every way out; the agent's UniqueFd belongs to a part that this one does not need.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

bool IsIdentifier(const std::string& text) {
  const bool digit_first = !text.empty() && text.front() >= '0' && text.front() <= '9';
  return !text.empty() && !digit_first && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (c & 0x80) != 0;
  });
}

// The main files of a module below one folder: a package wins over a module of its name, a folder
// without __init__.py comes last, as in Python's import.
std::vector<std::string> ModuleFiles(const std::string& base) {
  const std::string main = base + "/__main__.py";
  const std::string init = base + "/__init__.py";
  if (FileExists(init)) {
    return FileExists(main) ? std::vector<std::string>{main, init} : std::vector<std::string>{init};
  }
  if (FileExists(base + ".py")) {
    return {base + ".py"};
  }
  return FileExists(main) ? std::vector<std::string>{main} : std::vector<std::string>{};
}

std::vector<std::string> FindModule(const std::string& name,
                                    const std::vector<std::string>& module_folders) {
  const std::vector<std::string> pieces = Split(name, '.');
  if (!std::all_of(pieces.begin(), pieces.end(), IsIdentifier)) {
    return {};
  }
  const std::string relative = Join(pieces, "/");
  std::vector<std::string> files = ModuleFiles(relative);
  for (auto folder = module_folders.begin(); files.empty() && folder != module_folders.end();
       ++folder) {
    files = ModuleFiles(*folder + "/" + relative);
  }
  return files;
}

// A zip file can be run too; its text is not looked into.
bool LooksLikeText(const std::string& text) {
  return text.find('\0') == std::string::npos;
}

}  // namespace

std::vector<std::string> FindMainFiles(const WorkerTarget& target,
                                       const std::vector<std::string>& module_folders) {
  switch (target.kind) {
    case WorkerTarget::Kind::kProgram:
      return {};
    case WorkerTarget::Kind::kModule:
      return FindModule(target.name, module_folders);
    case WorkerTarget::Kind::kScript:
    case WorkerTarget::Kind::kRunPath:
      break;
  }
  const std::string name = SubstituteLocalRank(target.name, 0);
  const std::string file = IsDirectory(name) ? name + "/__main__.py" : name;
  return FileExists(file) ? std::vector<std::string>{file} : std::vector<std::string>{};
}

Expected<std::string> ReadPythonFile(const std::string& path) {
  const OpenFile file(path);
  if (file.get() < 0) {
    const int error = errno;
    return Fail(error, fmt::format("open '{}'", path));
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Fail(ErrorCode::kFailedPrecondition, fmt::format("'{}' is not a regular file", path));
  }
  std::string text;
  std::size_t length = 0;
  while (length <= kMaxPythonSourceBytes) {
    text.resize(std::min(kMaxPythonSourceBytes + 1, std::max<std::size_t>(2 * length, 64 * 1024)));
    const ssize_t count = ::read(file.get(), text.data() + length, text.size() - length);
    if (count < 0 && errno != EINTR) {
      const int error = errno;
      return Fail(error, fmt::format("read '{}'", path));
    }
    if (count == 0) {
      break;
    }
    length += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  text.resize(length);
  return text;
}

ScannedScript ScanTarget(const WorkerTarget& target,
                         const std::vector<std::string>& module_folders) {
  ScannedScript first;
  for (const std::string& file : FindMainFiles(target, module_folders)) {
    const Expected<std::string> text = ReadPythonFile(file);
    if (!text || !LooksLikeText(*text)) {
      continue;
    }
    ScannedScript scanned{file, ScanForLocalRank(*text)};
    if (scanned.scan.declared()) {
      return scanned;
    }
    if (first.file.empty()) {
      first = std::move(scanned);
    }
  }
  return first;
}

}  // namespace ddprun
