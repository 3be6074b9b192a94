#include "agent/process/owned_path.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>
#include <vector>

#include "agent/process/unique_fd.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

constexpr std::size_t kDepthLimit = 200;  // Each level holds a descriptor.

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

// A folder on the way down, and its name in the one above.
struct Level {
  Directory folder;
  std::string name;
};

std::string FolderOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

std::string NameOf(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

bool IsPlainAbsolute(const std::string& path) {
  if (path.size() < 2 || path.front() != '/' || path.find('\0') != std::string::npos) {
    return false;
  }
  for (const std::string& part : Split(std::string_view(path).substr(1), '/')) {
    if (part.empty() || part == "." || part == "..") {
      return false;
    }
  }
  return true;
}

// The folder `name` of `parent`, never through a symbolic link, never onto another file system.
Expected<Directory> OpenBelow(int parent, const std::string& name, dev_t device) {
  UniqueFd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status = {};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    const int err = errno;
    return Fail(err, fmt::format("open folder '{}'", name));
  }
  if (status.st_dev != device) {
    return Fail(ErrorCode::kFailedPrecondition, fmt::format("'{}' is a mount point", name));
  }
  Directory directory(::fdopendir(fd.get()));
  if (!directory) {
    const int err = errno;
    return Fail(err, fmt::format("read folder '{}'", name));
  }
  static_cast<void>(fd.Release());  // closedir closes it.
  return directory;
}

const dirent* NextEntry(DIR* directory) {
  for (;;) {
    const dirent* entry = ::readdir(directory);
    const std::string_view name = entry == nullptr ? "" : entry->d_name;
    if (name != "." && name != "..") {
      return entry;
    }
  }
}

Expected<void> Unlink(int folder, const std::string& name, int flags) {
  if (::unlinkat(folder, name.c_str(), flags) != 0 && errno != ENOENT) {
    const int err = errno;
    return Fail(err, fmt::format("remove '{}'", name));
  }
  return {};
}

// Handles the next thing in the deepest folder: goes into it, removes it, or leaves an emptied
// folder.
Expected<void> RemoveNext(int top, std::vector<Level>& levels, dev_t device) {
  DIR* const deepest = levels.back().folder.get();
  const dirent* entry = NextEntry(deepest);
  if (entry == nullptr) {
    const std::string name = levels.back().name;
    levels.pop_back();
    return Unlink(levels.empty() ? top : ::dirfd(levels.back().folder.get()), name, AT_REMOVEDIR);
  }
  struct stat status = {};
  if (::fstatat(::dirfd(deepest), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return {};  // Gone already.
  }
  if (!S_ISDIR(status.st_mode)) {
    return Unlink(::dirfd(deepest), entry->d_name, 0);
  }
  if (levels.size() >= kDepthLimit) {
    return Fail(ErrorCode::kOutOfRange,
                fmt::format("folders are nested over {} deep", kDepthLimit));
  }
  Expected<Directory> below = OpenBelow(::dirfd(deepest), entry->d_name, device);
  if (!below) {
    return tl::unexpected<Error>(below.error());
  }
  levels.push_back({std::move(*below), entry->d_name});
  return {};
}

Expected<void> RemoveFolder(int parent, const std::string& name, dev_t device) {
  Expected<Directory> folder = OpenBelow(parent, name, device);
  if (!folder) {
    return tl::unexpected<Error>(folder.error());
  }
  std::vector<Level> levels;
  levels.push_back({std::move(*folder), name});
  while (!levels.empty()) {
    if (Expected<void> step = RemoveNext(parent, levels, device); !step) {
      return step;
    }
  }
  return {};
}

}  // namespace

Expected<OwnedPath> OwnedPath::Claim(const std::string& path, bool recursive) {
  if (!IsPlainAbsolute(path) || FolderOf(path).empty()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("'{}' cannot be owned: it must be absolute, without '.' and '..', and at "
                    "least two levels below '/'",
                    path));
  }
  struct stat folder = {};
  if (::stat(FolderOf(path).c_str(), &folder) != 0) {
    const int err = errno;
    return Fail(err, fmt::format("own '{}'", path));
  }
  OwnedPath owned;
  owned.path_ = path;
  owned.recursive_ = recursive;
  owned.folder_ = {folder.st_dev, folder.st_ino};
  struct stat status = {};
  if (::lstat(path.c_str(), &status) == 0) {
    owned.inode_ = {status.st_dev, status.st_ino};
  }
  return owned;
}

Expected<void> OwnedPath::Remove() const {
  const std::string doing = fmt::format("remove '{}'", path_);
  const UniqueFd parent(::open(FolderOf(path_).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat folder = {};
  if (!parent || ::fstat(parent.get(), &folder) != 0) {
    const int err = errno;
    return err == ENOENT ? Expected<void>() : Fail(err, doing);
  }
  if (Inode{folder.st_dev, folder.st_ino} != folder_) {
    return Fail(ErrorCode::kFailedPrecondition,
                doing + ": its folder is not the one it was claimed in");
  }
  struct stat status = {};
  if (::fstatat(parent.get(), NameOf(path_).c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    const int err = errno;
    return err == ENOENT ? Expected<void>() : Fail(err, doing);
  }
  const bool same = Inode{status.st_dev, status.st_ino} == inode_;
  const bool made_by_us = inode_.number == 0 && status.st_uid == ::geteuid();
  if (!same && !made_by_us) {
    return Fail(ErrorCode::kFailedPrecondition, doing + ": it is not what was claimed");
  }
  Expected<void> removed =
      S_ISDIR(status.st_mode) && recursive_
          ? RemoveFolder(parent.get(), NameOf(path_), status.st_dev)
          : Unlink(parent.get(), NameOf(path_), S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0);
  return removed ? removed : FailIn(doing, removed.error());
}

std::string OwnedPath::Encode() const {
  return fmt::format("{} {} {} {} {} {}", recursive_ ? 1 : 0, folder_.device, folder_.number,
                     inode_.device, inode_.number, path_);
}

std::optional<OwnedPath> OwnedPath::Decode(std::string_view text) {
  std::uint64_t numbers[5] = {};
  for (std::uint64_t& number : numbers) {
    const std::string_view word = text.substr(0, text.find(' '));
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() || word.size() == text.size()) {
      return std::nullopt;
    }
    text.remove_prefix(word.size() + 1);
  }
  OwnedPath owned;
  owned.path_ = std::string(text);
  owned.recursive_ = numbers[0] == 1;
  owned.folder_ = {numbers[1], numbers[2]};
  owned.inode_ = {numbers[3], numbers[4]};
  if (!IsPlainAbsolute(owned.path_) || FolderOf(owned.path_).empty()) {
    return std::nullopt;
  }
  return owned;
}

}  // namespace ddprun
