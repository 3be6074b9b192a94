#include "agent/process/logs_directory.h"

#include <sys/stat.h>

#include <cstdlib>
#include <regex>

#include "tests/support/catch.h"
#include "tests/support/logs/io.h"

namespace ddprun {
namespace {

namespace fs = std::filesystem;

// TMPDIR, TEMP and TMP for the length of a test.
class TemporaryPlace {
 public:
  explicit TemporaryPlace(const std::string& path) { ::setenv("TMPDIR", path.c_str(), 1); }
  TemporaryPlace(const TemporaryPlace&) = delete;
  TemporaryPlace& operator=(const TemporaryPlace&) = delete;
  ~TemporaryPlace() {
    for (const char* name : {"TMPDIR", "TEMP", "TMP"}) {
      ::unsetenv(name);
    }
  }
};

std::size_t EntriesIn(const std::string& path) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

std::string ErrorOf(const std::string& log_dir, const std::string& run_id = "none") {
  const Expected<LogsDirectory> directory = LogsDirectory::Create(log_dir, run_id);
  return directory ? "" : directory.error().message;
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("the run folder is private, unique and below a base that is made with its parents") {
  const TempDir temp;
  const auto first = LogsDirectory::Create(temp / "a/b/c", "job7");
  const auto second = LogsDirectory::Create(temp / "a/b/c", "job7");
  REQUIRE(first.has_value());
  REQUIRE(second.has_value());
  CHECK(first->base() == temp / "a/b/c");
  CHECK_FALSE(first->is_temporary());
  CHECK(first->run_directory() != second->run_directory());
  const std::string name = fs::path(first->run_directory()).filename();
  CHECK(std::regex_match(name, std::regex("job7_[a-z0-9_]{8}")));
  struct stat status {};
  REQUIRE(::stat(first->run_directory().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
}

TEST_CASE("an attempt has a folder for each rank, and `latest` points to the newest") {
  const TempDir temp;
  auto directory = LogsDirectory::Create(temp.path(), "none");
  REQUIRE(directory.has_value());
  const std::string run = directory->run_directory();

  CHECK(directory->StartAttempt(0, {0, 1, 12}).value() == run + "/attempt_0");
  CHECK(fs::is_directory(run + "/attempt_0/12"));
  CHECK(fs::read_symlink(run + "/latest") == "attempt_0");
  WriteFile(run + "/attempt_0/0/stdout.log", "old");

  CHECK(directory->StartAttempt(0, {0}).value() == run + "/attempt_0.1");
  CHECK(directory->StartAttempt(0, {0}).value() == run + "/attempt_0.2");
  CHECK(fs::read_symlink(run + "/latest") == "attempt_0.2");
  CHECK(directory->StartAttempt(1, {0}).value() == run + "/attempt_1");
  CHECK(fs::read_symlink(run + "/latest") == "attempt_1");
  CHECK(ReadFile(run + "/attempt_0/0/stdout.log") == "old");
  CHECK(EntriesIn(run) == 5);
}

TEST_CASE("a relative folder becomes absolute") {
  const TempDir temp;
  const fs::path before = fs::current_path();
  fs::current_path(temp.path());
  const auto directory = LogsDirectory::Create("./logs/", "none");
  fs::current_path(before);
  REQUIRE(directory.has_value());
  CHECK(directory->base() == temp / "logs");
}

TEST_CASE("a folder that cannot be made is an error that names the option and the path") {
  const TempDir temp;
  WriteFile(temp / "file", "");
  CHECK(Has(ErrorOf(temp / "file"), "--log-dir"));
  CHECK(Has(ErrorOf(temp / "file"), temp / "file"));
  CHECK(Has(ErrorOf(temp / "file"), "not a directory"));
  CHECK(Has(ErrorOf(temp / "file/sub"), "not a directory"));
  CHECK(Has(ErrorOf("/proc/none"), "--log-dir"));
  CHECK(Has(ErrorOf(temp.path(), std::string(250, 'x')), "too long"));
  CHECK(Has(ErrorOf(temp.path(), "a/b"), "--rdzv-id 'a/b'"));
  CHECK(EntriesIn(temp.path()) == 1);
}

TEST_CASE("a folder without write permission is refused") {
  if (::geteuid() == 0) {
    // Root may write anywhere but to a read-only file system such as /sys.
    CHECK(Has(ErrorOf("/sys/ddprun"), "--log-dir: create folder '/sys/ddprun'"));
    return;
  }
  const TempDir temp;
  ::chmod(temp.path().c_str(), 0500);
  CHECK(Has(ErrorOf(temp.path()), "permission denied"));
  ::chmod(temp.path().c_str(), 0700);
}

TEST_CASE("/dev/null makes nothing") {
  auto directory = LogsDirectory::Create("/dev/null", "a/b");
  REQUIRE(directory.has_value());
  CHECK(directory->discards_files());
  CHECK(directory->StartAttempt(0, {0}).value().empty());
  directory->RemoveIfUnneeded();
  CHECK(fs::exists("/dev/null"));
}

TEST_CASE("without a folder the base is temporary, in the first place that works") {
  const TempDir temp;
  const TemporaryPlace place(temp / "missing");
  ::setenv("TEMP", temp.path().c_str(), 1);
  ::setenv("TMP", "/", 1);
  const auto directory = LogsDirectory::Create("", "none");
  REQUIRE(directory.has_value());
  CHECK(directory->is_temporary());
  CHECK(
      std::regex_match(directory->base(), std::regex(temp.path() + "/torchelastic_[a-z0-9_]{8}")));
  CHECK(Has(directory->run_directory(), directory->base() + "/none_"));
}

TEST_CASE("a temporary base that holds no file disappears") {
  const TempDir temp;
  const TemporaryPlace place(temp.path());
  auto directory = LogsDirectory::Create("", "none");
  REQUIRE(directory.has_value());
  REQUIRE(directory->StartAttempt(0, {0, 1}).has_value());
  REQUIRE(directory->StartAttempt(0, {0, 1}).has_value());
  SECTION("nothing in it") {
    directory->RemoveIfUnneeded();
    CHECK(EntriesIn(temp.path()) == 0);
  }
  SECTION("an error file in it") {
    WriteFile(directory->run_directory() + "/attempt_0/1/error.json", "{}");
    directory->RemoveIfUnneeded();
    CHECK(ReadFile(directory->run_directory() + "/attempt_0/1/error.json") == "{}");
    CHECK(fs::exists(directory->run_directory() + "/latest"));
  }
  SECTION("a link to elsewhere in it") {
    fs::create_symlink(temp.path(), directory->run_directory() + "/link");
    directory->RemoveIfUnneeded();
    CHECK(fs::exists(directory->run_directory()));
  }
  SECTION("seen from outside") {
    LogsDirectory::RemoveIfEmpty(directory->base());
    CHECK(EntriesIn(temp.path()) == 0);
    LogsDirectory::RemoveIfEmpty(directory->base());
  }
}

TEST_CASE("a failed run folder leaves no temporary base") {
  const TempDir temp;
  const TemporaryPlace place(temp.path());
  CHECK_FALSE(LogsDirectory::Create("", std::string(250, 'x')).has_value());
  CHECK(EntriesIn(temp.path()) == 0);
}

TEST_CASE("a given folder stays, empty or not") {
  const TempDir temp;
  auto directory = LogsDirectory::Create(temp.path(), "none");
  REQUIRE(directory.has_value());
  REQUIRE(directory->StartAttempt(0, {0}).has_value());
  directory->RemoveIfUnneeded();
  CHECK(fs::is_directory(directory->run_directory() + "/attempt_0/0"));
}

}  // namespace
}  // namespace ddprun
