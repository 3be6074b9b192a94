#include "launcher/script/script_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <memory>
#include <vector>

#include "launcher/script/python_installation.h"
#include "launcher/script/script_source.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

constexpr std::size_t kMaxEntries = 2'000;  // Read of a folder when looking for a similar name.
constexpr std::size_t kHeadBytes = 256;     // The kernel reads as much of a #! line.

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string Folder(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

std::string FileName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

bool IsRegular(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// The file's beginning; empty for what is not a regular file.
std::string ReadHead(const std::string& path) {
  if (!IsRegular(path)) {
    return {};
  }
  std::ifstream file(path, std::ios::binary);
  std::string head(kHeadBytes, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return head;
}

bool IsElf(const std::string& head) {
  return head.compare(0, 4,
                      "\x7f"
                      "ELF") == 0;
}

// A similar file name in the same folder: a typing error, or a missing ".py".
std::optional<std::string> SimilarFile(const std::string& path) {
  const std::string name = FileName(path);
  if (FileExists(path + ".py")) {
    return path + ".py";
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(Folder(path).c_str()), &::closedir);
  std::vector<std::string> names;
  while (folder != nullptr && names.size() < kMaxEntries) {
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) {
      break;
    }
    if (EndsWith(entry->d_name, ".py")) {
      names.emplace_back(entry->d_name);
    }
  }
  std::sort(names.begin(), names.end());
  const auto nearest = NearestWord(name, names);
  const bool has_folder = path.find('/') != std::string::npos;
  return nearest && has_folder ? Folder(path) + *nearest : nearest;
}

// "pkg.sub.main": no file, but the shape of a module's name, or one that is really there.
bool LooksLikeModule(const std::string& name) {
  const bool dotted = name.find('.') != std::string::npos && !EndsWith(name, ".py");
  const bool shaped = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  });
  const bool there =
      !FindMainFiles(WorkerTarget{WorkerTarget::Kind::kModule, name, {}}, {}).empty();
  const bool ends_well = !name.empty() && name.front() != '.' && name.back() != '.';
  return shaped && ends_well && name.find("..") == std::string::npos && (dotted || there);
}

std::string MissingScript(const std::string& name) {
  const auto similar = SimilarFile(name);
  if (LooksLikeModule(name) && !similar) {
    return fmt::format("script '{}' does not exist, but looks like a module: run it with -m {}",
                       name, name);
  }
  const std::string hint = similar ? fmt::format("; did you mean '{}'?", *similar) : "";
  return fmt::format("script '{}' does not exist{}", name, hint);
}

Expected<void> CheckReadable(const std::string& path) {
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0) {
    const int error = errno;
    return Fail(error, fmt::format("script '{}' cannot be read", path));
  }
  if (IsElf(ReadHead(path))) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("script '{}' is a compiled program, not Python: use --no-python", path));
  }
  return {};
}

Expected<void> CheckScript(const std::string& name) {
  if (name == "-") {
    return {};
  }
  struct stat status {};
  if (::stat(name.c_str(), &status) != 0) {
    const int error = errno;
    return error == ENOENT || error == ENOTDIR
               ? Fail(ErrorCode::kNotFound, MissingScript(name))
               : Fail(error, fmt::format("script '{}' cannot be read", name));
  }
  if (!S_ISDIR(status.st_mode)) {
    return CheckReadable(name);
  }
  const std::string main = name + (EndsWith(name, "/") ? "" : "/") + "__main__.py";
  if (!FileExists(main)) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("script '{}' is a folder without a __main__.py: name the file to run", name));
  }
  return CheckReadable(main);
}

Expected<void> CheckModule(const std::string& name) {
  const bool path = name.find('/') != std::string::npos;
  if (!path && !(EndsWith(name, ".py") && FileExists(name))) {
    return name.empty() ? Fail(ErrorCode::kInvalidArgument, "-m: the module's name is empty")
                        : Expected<void>();
  }
  std::string module = EndsWith(name, ".py") ? name.substr(0, name.size() - 3) : name;
  module = module.compare(0, 2, "./") == 0 ? module.substr(2) : module;
  std::replace(module.begin(), module.end(), '/', '.');
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("-m: '{}' is a file's name; a module's name is accepted, such as '{}', or "
                  "leave -m out",
                  name, module));
}

Expected<void> FailNoProgram(const std::string& name, const ProgramSearch& search) {
  if (search.not_executable) {
    return Fail(ErrorCode::kPermissionDenied,
                fmt::format("--no-python: '{}' is not executable; run chmod +x on it, or start it "
                            "by its interpreter (bash {})",
                            *search.not_executable, *search.not_executable));
  }
  if (name.find('/') == std::string::npos) {
    const std::string hint =
        IsRegular(name) ? fmt::format("; the file in this folder is './{}'", name) : "";
    return Fail(ErrorCode::kNotFound,
                fmt::format("--no-python: program '{}' is not found in PATH{}", name, hint));
  }
  return IsDirectory(name) ? Fail(ErrorCode::kInvalidArgument,
                                  fmt::format("--no-python: '{}' is a folder, not a program", name))
                           : Fail(ErrorCode::kNotFound,
                                  fmt::format("--no-python: program '{}' does not exist", name));
}

// Blank-separated words of a #! line.
std::vector<std::string> Words(std::string_view line) {
  std::vector<std::string> words;
  for (const std::string& word : Split(line, ' ')) {
    const std::string_view trimmed = Trim(word);
    if (!trimmed.empty()) {
      words.emplace_back(trimmed);
    }
  }
  return words;
}

// The program that `env` will look for: the first word that is no option and no NAME=value.
std::optional<std::string> ProgramOfEnv(const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].front() != '-' && words[i].find('=') == std::string::npos) {
      return words[i];
    }
  }
  return std::nullopt;
}

Expected<void> CheckShebang(const std::string& path, const std::string& head,
                            const EnvironmentLookup& environment) {
  const std::string line = head.substr(2, std::min(head.find('\n'), head.size()) - 2);
  if (EndsWith(line, "\r")) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--no-python: the #! line of '{}' ends with a carriage return; convert "
                            "the file to Unix line ends",
                            path));
  }
  const std::vector<std::string> words = Words(line);
  const std::string interpreter = words.empty() ? "" : words.front();
  if (!IsExecutableFile(interpreter)) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("--no-python: '{}' names the interpreter '{}' in its #! line, which "
                            "cannot be executed",
                            path, interpreter));
  }
  const bool by_env = FileName(interpreter) == "env";
  const auto program = by_env ? ProgramOfEnv(words) : std::nullopt;
  if (program && !FindProgram(*program, environment).path) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("--no-python: '{}' names the interpreter '{}' in its #! line, which is "
                            "not found in PATH",
                            path, *program));
  }
  return {};
}

// Text without a #! line: execve(2) refuses it (ENOEXEC); only shells run it all the same.
bool IsPlainText(const std::string& head) {
  return !head.empty() && std::all_of(head.begin(), head.end(), [](char c) {
    return c == '\t' || c == '\n' || c == '\r' || c >= ' ' || (c & 0x80) != 0;
  });
}

Expected<void> CheckProgram(const std::string& name, const EnvironmentLookup& environment) {
  const ProgramSearch search = FindProgram(name, environment);
  if (!search.path) {
    return FailNoProgram(name, search);
  }
  const std::string head = ReadHead(*search.path);
  if (head.compare(0, 2, "#!") == 0) {
    return CheckShebang(*search.path, head, environment);
  }
  if (IsPlainText(head)) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--no-python: '{}' is a text without a #! line; add one, or start it by "
                    "its interpreter (bash {})",
                    *search.path, *search.path));
  }
  return {};
}

Expected<void> CheckScripts(const std::string& name, std::uint32_t local_world_size) {
  std::string last;
  for (std::uint32_t rank = 0; rank < std::max<std::uint32_t>(local_world_size, 1); ++rank) {
    const std::string script = SubstituteLocalRank(name, rank);
    if (rank > 0 && script == last) {
      break;
    }
    if (auto checked = CheckScript(script); !checked) {
      return checked;
    }
    last = script;
  }
  return {};
}

}  // namespace

Expected<void> CheckTarget(const WorkerTarget& target, std::uint32_t local_world_size,
                           const EnvironmentLookup& environment) {
  switch (target.kind) {
    case WorkerTarget::Kind::kModule:
      return CheckModule(target.name);
    case WorkerTarget::Kind::kProgram:
      return CheckProgram(target.name, environment);
    case WorkerTarget::Kind::kScript:
    case WorkerTarget::Kind::kRunPath:
      break;
  }
  return CheckScripts(target.name, local_world_size);
}

}  // namespace ddprun
