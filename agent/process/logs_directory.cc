#include "agent/process/logs_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "agent/core/logs_specs.h"
#include "rendezvous/base/random_id.h"

namespace ddprun {
namespace {

constexpr int kNameTries = 100;  // As Python's tempfile, roughly: 37^8 names do not collide.
constexpr mode_t kPrivate = 0700;

tl::unexpected<Error> FailLogDir(int err, const std::string& path) {
  return Fail(err, fmt::format("--log-dir: create folder '{}'", path));
}

// Absolute, as os.path.abspath makes it, but without touching "..", which may follow a link.
Expected<std::string> AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) {
    return FailLogDir(error.value(), path);
  }
  const bool goes_up = std::find(absolute.begin(), absolute.end(), "..") != absolute.end();
  std::string text = goes_up ? absolute.string() : absolute.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') {
    text.pop_back();
  }
  return text;
}

// One folder that does not exist yet, called `prefix` and random characters.
Expected<std::string> MakeUniqueDirectory(const std::string& prefix) {
  for (int tries = 0; tries < kNameTries; ++tries) {
    const std::string path = prefix + RandomSuffix();
    if (::mkdir(path.c_str(), kPrivate) == 0) {
      return path;
    }
    const int err = errno;
    if (err != EEXIST) {
      return FailLogDir(err, path);
    }
  }
  return FailLogDir(EEXIST, fmt::format("{}...", prefix));
}

std::vector<std::string> TemporaryPlaces() {
  std::vector<std::string> places;
  for (const char* name : {"TMPDIR", "TEMP", "TMP"}) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it.
    if (value != nullptr && *value != '\0') {
      places.emplace_back(value);
    }
  }
  places.insert(places.end(), {"/tmp", "/var/tmp", "/usr/tmp", "."});
  return places;
}

Expected<std::string> MakeTemporaryBase() {
  std::optional<Error> first_error;
  for (const std::string& place : TemporaryPlaces()) {
    Expected<std::string> base = AbsolutePath(place).and_then([](const std::string& directory) {
      return MakeUniqueDirectory(fmt::format("{}/torchelastic_", directory));
    });
    if (base) {
      return base;
    }
    if (!first_error) {
      first_error = base.error();
    }
  }
  return FailIn("no temporary folder for the logs, set TMPDIR or --log-dir", *first_error);
}

Expected<std::string> MakeGivenBase(const std::string& log_dir) {
  Expected<std::string> base = AbsolutePath(log_dir);
  if (!base) {
    return base;
  }
  std::error_code error;
  std::filesystem::create_directories(*base, error);
  if (!error && !std::filesystem::is_directory(*base, error) && !error) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (error) {
    return FailLogDir(error.value(), *base);
  }
  return base;
}

// The first of attempt_<n>, attempt_<n>.1, ... that does not exist yet.
Expected<std::string> MakeAttemptDirectory(const std::string& run_directory,
                                           std::uint64_t restart_count) {
  for (std::uint64_t repeat = 0;; ++repeat) {
    std::string name = AttemptDirectoryName(restart_count, repeat);
    const std::string path = run_directory + "/" + name;
    if (::mkdir(path.c_str(), 0777) == 0) {
      return name;
    }
    const int err = errno;
    if (err != EEXIST) {
      return FailLogDir(err, path);
    }
  }
}

// All folders of a tree, parents first, if it holds nothing but folders and `latest` links;
// those links in addition.
struct EmptyTree {
  std::vector<std::filesystem::path> directories;
  std::vector<std::filesystem::path> links;
};

std::optional<EmptyTree> ListEmptyTree(const std::string& base) {
  EmptyTree tree;
  tree.directories.emplace_back(base);
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(base, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    const bool link = entry->is_symlink(error);
    if (error) {
      return std::nullopt;
    }
    if (link && entry->path().filename() == "latest") {
      tree.links.push_back(entry->path());
    } else if (!link && entry->is_directory(error) && !error) {
      tree.directories.push_back(entry->path());
    } else {
      return std::nullopt;
    }
  }
  return error ? std::nullopt : std::optional<EmptyTree>(std::move(tree));
}

}  // namespace

Expected<LogsDirectory> LogsDirectory::Create(const std::string& log_dir,
                                              const std::string& run_id) {
  LogsSpecs specs;
  specs.log_dir = log_dir;
  const Expected<void> valid = CheckLogsSpecs(specs, run_id);
  if (!valid) {
    return tl::unexpected(valid.error());
  }
  LogsDirectory directory;
  if (specs.discards_files()) {
    return directory;
  }
  directory.temporary_ = log_dir.empty();
  const Expected<std::string> base =
      directory.temporary_ ? MakeTemporaryBase() : MakeGivenBase(log_dir);
  if (!base) {
    return tl::unexpected(base.error());
  }
  directory.base_ = *base;
  Expected<std::string> run = MakeUniqueDirectory(*base + "/" + RunDirectoryName(run_id, ""));
  if (!run) {
    directory.RemoveIfUnneeded();
    return tl::unexpected(run.error());
  }
  directory.run_directory_ = std::move(*run);
  return directory;
}

Expected<std::string> LogsDirectory::StartAttempt(std::uint64_t restart_count,
                                                  const std::vector<std::uint32_t>& local_ranks) {
  if (discards_files()) {
    return std::string();
  }
  Expected<std::string> name = MakeAttemptDirectory(run_directory_, restart_count);
  if (!name) {
    return name;
  }
  const std::string attempt = run_directory_ + "/" + *name;
  for (const std::uint32_t local_rank : local_ranks) {
    const std::string path = fmt::format("{}/{}", attempt, local_rank);
    if (::mkdir(path.c_str(), 0777) != 0) {
      const int err = errno;
      return FailLogDir(err, path);
    }
  }
  const Expected<void> latest = PointLatestTo(*name);
  if (!latest) {
    return tl::unexpected(latest.error());
  }
  return attempt;
}

// A link cannot be changed in place; rename(2) replaces it at once, so a reader always finds one.
Expected<void> LogsDirectory::PointLatestTo(const std::string& attempt_name) const {
  const std::string link = run_directory_ + "/latest";
  const std::string fresh = fmt::format("{}/.latest_{}", run_directory_, RandomSuffix());
  if (::symlink(attempt_name.c_str(), fresh.c_str()) != 0) {
    const int err = errno;
    return err == EPERM || err == EOPNOTSUPP
               ? Expected<void>()  // A file system without symbolic links: it goes without.
               : FailLogDir(err, link);
  }
  if (::rename(fresh.c_str(), link.c_str()) != 0) {
    const int err = errno;
    ::unlink(fresh.c_str());
    return FailLogDir(err, link);
  }
  return {};
}

void LogsDirectory::RemoveIfUnneeded() {
  if (temporary_) {
    RemoveIfEmpty(base_);
  }
}

void LogsDirectory::RemoveIfEmpty(const std::string& base) {
  const std::optional<EmptyTree> tree = ListEmptyTree(base);
  if (!tree) {
    return;
  }
  for (const std::filesystem::path& link : tree->links) {
    ::unlink(link.c_str());
  }
  // Children first. rmdir(2) refuses a folder in which something has appeared since.
  for (auto directory = tree->directories.rbegin(); directory != tree->directories.rend();
       ++directory) {
    ::rmdir(directory->c_str());
  }
}

}  // namespace ddprun
