#pragma once

// OwnedPath: a file, FIFO or folder that the launcher made and that must be gone when it is gone.
// Claimed by the launcher, removed by the Guardian, which runs long after in another process: so
// the claim says enough to remove this thing or nothing.

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/base/error.h"

namespace ddprun {

class OwnedPath {
 public:
  // kInvalidArgument for a relative path, one with empty, "." or ".." parts, "/" and its direct
  // children; the errno of its folder, which must exist. The path itself need not exist yet.
  static Expected<OwnedPath> Claim(const std::string& path, bool recursive);

  const std::string& path() const { return path_; }

  // Gone afterwards, or an error: the folder is not the one of the claim, the path was another
  // inode at the claim, it was made later by another user, or a folder is not empty and the claim
  // not recursive. A path that does not exist is fine. Never follows a symbolic link below the
  // folder, never leaves the file system.
  Expected<void> Remove() const;

  // One line for the Guardian's socket.
  std::string Encode() const;
  static std::optional<OwnedPath> Decode(std::string_view text);

 private:
  struct Inode {
    dev_t device = 0;
    ino_t number = 0;  // 0: there was none.
    friend bool operator==(const Inode&, const Inode&) = default;
  };

  OwnedPath() = default;

  std::string path_;
  bool recursive_ = false;
  Inode folder_;
  Inode inode_;
};

}  // namespace ddprun
