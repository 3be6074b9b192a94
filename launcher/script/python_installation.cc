#include "launcher/script/python_installation.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxEntries = 20'000;  // Of one folder: a site-packages has a few hundred.
constexpr std::streamsize kMaxSmallFile = 64 * 1024;

std::string ReadSmallFile(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) {
    return {};
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(kMaxSmallFile), '\0');
  file.read(text.data(), kMaxSmallFile);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

// Names in a folder with this beginning, sorted, so that the answer never depends on the disk.
std::vector<std::string> Entries(const fs::path& folder, std::string_view start) {
  std::vector<std::string> names;
  std::error_code error;
  std::size_t seen = 0;
  for (fs::directory_iterator entry(folder, error), end;
       !error && entry != end && seen < kMaxEntries; entry.increment(error), ++seen) {
    std::string name = entry->path().filename().string();
    if (name.compare(0, start.size(), start) == 0) {
      names.push_back(std::move(name));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// `key = value` of pyvenv.cfg.
std::optional<std::string> Setting(const std::string& text, std::string_view key) {
  for (const std::string& line : Split(text, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos && Trim(std::string_view(line).substr(0, equals)) == key) {
      return std::string(Trim(std::string_view(line).substr(equals + 1)));
    }
  }
  return std::nullopt;
}

class FolderSearch {
 public:
  void Add(const fs::path& folder) {
    std::error_code ignored;
    const std::string name = folder.string();
    const bool known = std::find(folders_.begin(), folders_.end(), name) != folders_.end();
    if (!known && fs::is_directory(folder, ignored)) {
      folders_.push_back(name);
    }
  }

  // lib/python3.N/<last> below a prefix, for all versions N or for the one named.
  void AddVersioned(const fs::path& prefix, const std::string& version, std::string_view last) {
    for (const char* lib : {"lib", "lib64"}) {
      const std::vector<std::string> names =
          version.empty() ? Entries(prefix / lib, "python3.") : std::vector<std::string>{version};
      for (const std::string& name : names) {
        Add(prefix / lib / name / last);
      }
    }
  }

  void AddInstallation(const fs::path& prefix, const std::string& version) {
    AddVersioned(prefix / "local", version, "dist-packages");
    AddVersioned(prefix, version, "site-packages");
    Add(prefix / "lib" / "python3" / "dist-packages");
    AddVersioned(prefix, version, "dist-packages");
  }

  std::vector<std::string> Take() { return std::move(folders_); }

 private:
  std::vector<std::string> folders_;
};

// "python3.11" if the executable's name says so.
std::string VersionInName(const fs::path& executable) {
  const std::string name = executable.filename().string();
  return name.compare(0, 8, "python3.") == 0 ? name : std::string();
}

void AddUserFolders(FolderSearch& search, const std::string& version,
                    const EnvironmentLookup& environment) {
  if (!environment("PYTHONNOUSERSITE").value_or("").empty()) {
    return;
  }
  const auto base = environment("PYTHONUSERBASE");
  const auto home = environment("HOME");
  if (base && !base->empty()) {
    search.AddVersioned(*base, version, "site-packages");
  } else if (home && !home->empty()) {
    search.AddVersioned(fs::path(*home) / ".local", version, "site-packages");
  }
}

void AddBase(FolderSearch& search, const fs::path& executable,
             const EnvironmentLookup& environment) {
  std::error_code error;
  const fs::path real = fs::canonical(executable, error);
  if (error) {
    return;
  }
  AddUserFolders(search, VersionInName(real), environment);
  search.AddInstallation(real.parent_path().parent_path(), VersionInName(real));
}

// `__version__ = '2.15.0+cpu'`, with or without an annotation.
std::optional<std::string> VersionIn(const std::string& version_file) {
  constexpr std::string_view kName = "__version__";
  for (const std::string& line : Split(version_file, '\n')) {
    const std::size_t quote = line.find_first_of("'\"");
    const bool assigns = line.compare(0, kName.size(), kName) == 0;
    if (assigns && quote != std::string::npos) {
      const std::size_t end = line.find(line[quote], quote + 1);
      return line.substr(quote + 1, end == std::string::npos ? end : end - quote - 1);
    }
  }
  return std::nullopt;
}

// "2.4.1" of torch-2.4.1.dist-info and torch-2.4.1-py3.10.egg-info.
std::optional<std::string> VersionInMetadataName(const std::string& name) {
  const fs::path path(name);
  if (path.extension() != ".dist-info" && path.extension() != ".egg-info") {
    return std::nullopt;
  }
  const std::string version = path.stem().string().substr(std::string_view("torch-").size());
  return version.substr(0, version.find('-'));
}

std::optional<std::string> TorchVersionIn(const fs::path& folder) {
  if (auto version = VersionIn(ReadSmallFile(folder / "torch" / "version.py"))) {
    return version;
  }
  for (const std::string& name : Entries(folder, "torch-")) {
    const auto version = VersionInMetadataName(name);
    if (version && MajorVersion(*version)) {
      return version;
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> PackageFolders(const std::string& interpreter,
                                        const EnvironmentLookup& environment) {
  FolderSearch search;
  for (const std::string& folder : Split(environment("PYTHONPATH").value_or(""), ':')) {
    if (!folder.empty()) {
      search.Add(folder);
    }
  }
  const fs::path executable = FindProgram(interpreter, environment).path.value_or("");
  if (executable.empty()) {
    return search.Take();
  }
  const fs::path prefix = fs::absolute(executable).parent_path().parent_path();
  const std::string settings = ReadSmallFile(prefix / "pyvenv.cfg");
  if (settings.empty()) {
    AddBase(search, executable, environment);
    return search.Take();
  }
  search.AddVersioned(prefix, "", "site-packages");
  if (Setting(settings, "include-system-site-packages") == "true") {
    AddBase(search, executable, environment);
  }
  return search.Take();
}

std::optional<std::string> FindTorchVersion(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    if (auto version = TorchVersionIn(folder)) {
      return version;
    }
  }
  return std::nullopt;
}

std::optional<int> MajorVersion(const std::string& version) {
  const auto number = ParsePythonInt(version.substr(0, version.find('.')));
  const bool sane = number && *number >= 0 && *number < 1000;
  return sane ? std::optional<int>(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace ddprun
