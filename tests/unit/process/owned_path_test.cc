#include "agent/process/owned_path.h"

#include <sys/stat.h>

#include <fstream>

#include "tests/support/process.h"

namespace ddprun {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;

OwnedPath MustClaim(const std::string& path, bool recursive) {
  Expected<OwnedPath> owned = OwnedPath::Claim(path, recursive);
  INFO((owned ? "" : owned.error().message));
  REQUIRE(owned.has_value());
  // As the guardian has it: after the way through the socket.
  const std::optional<OwnedPath> copy = OwnedPath::Decode(owned->Encode());
  REQUIRE(copy.has_value());
  CHECK(copy->path() == path);
  return *copy;
}

TEST_CASE("dangerous paths cannot be owned") {
  for (const std::string path : {"", "/", "/tmp", "relative/x", "/tmp/", "/tmp//x", "/tmp/../x",
                                 "/tmp/./x", "/tmp/x/..", "//x/y"}) {
    INFO(path);
    CHECK(OwnedPath::Claim(path, true).error().code == ErrorCode::kInvalidArgument);
  }
  CHECK(OwnedPath::Claim("/nowhere/x", true).error().code == ErrorCode::kNotFound);
  CHECK(OwnedPath::Claim(std::string("/tmp/x\0y", 8), true).error().code ==
        ErrorCode::kInvalidArgument);
}

TEST_CASE("a line that is no claim is refused") {
  for (const std::string line : {"", "1", "1 2 3 4 5", "1 2 3 4 5 ", "1 2 3 4 5 /", "1 2 3 4 5 x",
                                 "1 2 x 4 5 /tmp/x", "1 2 3 4 5 /tmp/../etc"}) {
    INFO(line);
    CHECK_FALSE(OwnedPath::Decode(line).has_value());
  }
}

TEST_CASE("a path that is claimed before it is made is removed, whatever it became") {
  const TempFolder folder;
  const OwnedPath fifo = MustClaim(folder / "a fifo", false);
  CHECK(fifo.Remove().has_value());  // Never made.
  REQUIRE(::mkfifo((folder / "a fifo").c_str(), 0600) == 0);
  CHECK(fifo.Remove().has_value());
  CHECK_FALSE(fs::exists(folder / "a fifo"));
}

TEST_CASE("a folder is removed with all that is in it, and nothing outside") {
  const TempFolder folder;
  const OwnedPath owned = MustClaim(folder / "tree", true);
  fs::create_directories(folder / "tree/a/b/c");
  std::ofstream(folder / "tree/a/file") << "x";
  std::ofstream(folder / "keep") << "x";
  fs::create_directories(folder / "outside");
  std::ofstream(folder / "outside/keep") << "x";
  fs::create_directory_symlink(folder / "outside", folder / "tree/link");
  fs::create_symlink("nowhere", folder / "tree/a/dangling");
  const Expected<void> removed = owned.Remove();
  INFO((removed ? "" : removed.error().message));
  CHECK(removed.has_value());
  CHECK_FALSE(fs::exists(folder / "tree"));
  CHECK(fs::exists(folder / "outside/keep"));
  CHECK(fs::exists(folder / "keep"));
}

TEST_CASE("a link in the place of a folder is removed, not followed") {
  const TempFolder folder;
  fs::create_directories(folder / "outside");
  std::ofstream(folder / "outside/keep") << "x";
  const OwnedPath owned = MustClaim(folder / "tree", true);
  fs::create_directory_symlink(folder / "outside", folder / "tree");
  CHECK(owned.Remove().has_value());
  CHECK(fs::exists(folder / "outside/keep"));
  CHECK_FALSE(fs::is_symlink(folder / "tree"));
}

TEST_CASE("another thing under the claimed name stays") {
  const TempFolder folder;
  std::ofstream(folder / "file") << "ours";
  std::ofstream(folder / "other") << "theirs";
  const OwnedPath owned = MustClaim(folder / "file", false);
  fs::rename(folder / "other", folder / "file");
  CHECK_THAT(owned.Remove().error().message, Catch::Matchers::Contains("not what was claimed"));
  CHECK(fs::exists(folder / "file"));
}

TEST_CASE("a folder that was exchanged on the way stays") {
  const TempFolder folder;
  fs::create_directories(folder / "a");
  const OwnedPath owned = MustClaim(folder / "a/x", true);
  fs::rename(folder / "a", folder / "b");
  fs::create_directories(folder / "a/x");
  CHECK_THAT(owned.Remove().error().message, Catch::Matchers::Contains("not the one"));
  CHECK(fs::exists(folder / "a/x"));
}

TEST_CASE("a folder claimed without its content is removed only when empty") {
  const TempFolder folder;
  const OwnedPath owned = MustClaim(folder / "x", false);
  fs::create_directories(folder / "x/y");
  CHECK_FALSE(owned.Remove().has_value());
  fs::remove(folder / "x/y");
  CHECK(owned.Remove().has_value());
  CHECK_FALSE(fs::exists(folder / "x"));
}

TEST_CASE("folders nested beyond the limit are left with an error") {
  const TempFolder folder;
  const OwnedPath owned = MustClaim(folder / "deep", true);
  std::string path = folder / "deep";
  for (int i = 0; i < 205; ++i) {
    fs::create_directory(path);
    path += "/d";
  }
  CHECK(owned.Remove().error().code == ErrorCode::kOutOfRange);
}

}  // namespace
}  // namespace ddprun
