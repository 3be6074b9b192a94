#include "agent/process/job_cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <memory>

#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

constexpr std::size_t kFileLimit = std::size_t{4} * 1024 * 1024;

std::optional<std::string> ReadFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return std::nullopt;
  }
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t size = 0;
  while (text.size() < kFileLimit && (size = ::read(fd.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  return text;
}

// mountinfo writes blanks, tabs, line feeds and backslashes of a path as \ooo.
std::string Unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3) {
      plain.push_back(static_cast<char>(code));
      i += 3;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

// The path in the v2 hierarchy: the line "0::<path>".
std::optional<std::string> OwnPathIn(std::string_view self_cgroup) {
  for (const std::string& line : Split(self_cgroup, '\n')) {
    if (line.starts_with("0::/")) {
      return line.substr(3);
    }
  }
  return std::nullopt;
}

struct Mount {
  std::string root;   // Which part of the hierarchy...
  std::string point;  // ...is mounted where.
};

// proc(5): id parent major:minor root mount-point options [fields] - type source options.
std::optional<Mount> ParseCgroup2Mount(const std::string& line) {
  const std::vector<std::string> words = Split(line, ' ');
  for (std::size_t i = 5; i + 1 < words.size(); ++i) {
    if (words[i] == "-") {
      return words[i + 1] == "cgroup2"
                 ? std::optional<Mount>({Unescape(words[3]), Unescape(words[4])})
                 : std::nullopt;
    }
  }
  return std::nullopt;
}

// Where the path lies below the mount; nullopt when the mount does not show it.
std::optional<std::string> Locate(const Mount& mount, const std::string& path) {
  const std::string root = mount.root == "/" ? "" : mount.root;
  const bool inside = path == mount.root || root.empty() || path.starts_with(root + "/");
  if (!inside || path.starts_with("/..")) {
    return std::nullopt;
  }
  std::string below = path.substr(root.size());
  return mount.point + (below == "/" ? "" : below);
}

std::string Trimmed(const std::optional<std::string>& text) {
  return text ? std::string(Trim(*text)) : std::string();
}

// The cgroup and all below it, parents first.
std::vector<std::string> WithDescendants(const std::string& top) {
  std::vector<std::string> paths = {top};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::unique_ptr<DIR, CloseDirectory> folder(::opendir(paths[i].c_str()));
    while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
      const std::string_view name = entry->d_name;
      if (entry->d_type == DT_DIR && name != "." && name != "..") {
        paths.push_back(fmt::format("{}/{}", paths[i], name));
      }
    }
  }
  return paths;
}

// A group below a threaded one can hold threads only.
Expected<void> CheckUsable(const std::string& own, const std::string& path) {
  const std::string type = Trimmed(ReadFile(path + "/cgroup.type"));
  if (type != "domain") {
    return Fail(ErrorCode::kFailedPrecondition,
                fmt::format("cgroup '{}' is of type '{}', not 'domain'", path, type));
  }
  // Moving a process needs this permission in the common ancestor: our own group.
  for (const std::string& group : {own, path}) {
    if (::access((group + "/cgroup.procs").c_str(), W_OK) != 0) {
      const int err = errno;
      return Fail(err, fmt::format("write '{}/cgroup.procs'", group));
    }
  }
  return {};
}

}  // namespace

std::optional<std::string> FindOwnCgroup(std::string_view mountinfo, std::string_view self_cgroup) {
  const std::optional<std::string> path = OwnPathIn(self_cgroup);
  if (!path) {
    return std::nullopt;
  }
  for (const std::string& line : Split(mountinfo, '\n')) {
    const std::optional<Mount> mount = ParseCgroup2Mount(line);
    if (std::optional<std::string> place = mount ? Locate(*mount, *path) : std::nullopt) {
      return place;
    }
  }
  return std::nullopt;
}

Expected<std::string> JobCgroup::PathFor(std::string_view id) {
  const std::optional<std::string> own = FindOwnCgroup(
      ReadFile("/proc/self/mountinfo").value_or(""), ReadFile("/proc/self/cgroup").value_or(""));
  if (!own) {
    return Fail(ErrorCode::kNotFound,
                "no cgroup v2 tree is mounted here that shows our own cgroup");
  }
  return fmt::format("{}/ddprun-{}", *own, id);
}

Expected<JobCgroup> JobCgroup::Create(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0) {
    const int err = errno;
    return Fail(err, fmt::format("make cgroup '{}'", path));
  }
  Expected<void> usable = CheckUsable(path.substr(0, path.rfind('/')), path);
  Expected<JobCgroup> cgroup = usable ? Open(path) : tl::unexpected<Error>(usable.error());
  if (!cgroup) {
    ::rmdir(path.c_str());
  }
  return cgroup;
}

Expected<JobCgroup> JobCgroup::Open(std::string path) {
  JobCgroup cgroup;
  cgroup.directory_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct statfs system = {};
  if (!cgroup.directory_ || ::fstatfs(cgroup.directory_.get(), &system) != 0) {
    const int err = errno;
    return Fail(err, fmt::format("open cgroup '{}'", path));
  }
  if (system.f_type != CGROUP2_SUPER_MAGIC) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is not a cgroup", path));
  }
  cgroup.path_ = std::move(path);
  return cgroup;
}

std::vector<pid_t> JobCgroup::Pids() const {
  std::vector<pid_t> pids;
  for (const std::string& path : WithDescendants(path_)) {
    for (const std::string& line : Split(ReadFile(path + "/cgroup.procs").value_or(""), '\n')) {
      const auto pid = ParsePythonInt(line);
      if (pid && *pid > 0) {
        pids.push_back(static_cast<pid_t>(*pid));
      }
    }
  }
  return pids;
}

bool JobCgroup::Kill() const {
  const UniqueFd file(::openat(directory_.get(), "cgroup.kill", O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), "1", 1) == 1;
}

Expected<void> JobCgroup::Remove() {
  const std::vector<std::string> paths = WithDescendants(path_);
  for (auto path = paths.rbegin(); path != paths.rend(); ++path) {
    if (::rmdir(path->c_str()) != 0 && errno != ENOENT) {
      const int err = errno;
      return Fail(err, fmt::format("remove cgroup '{}'", *path));
    }
  }
  directory_.Reset();
  return {};
}

}  // namespace ddprun
