#include "launcher/report/error_record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "agent/process/error_file.h"
#include "agent/process/unique_fd.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace ddprun {
namespace {

ProcessFailure Failure(const std::string& error_file, ExitStatus status) {
  WorkerDeath death;
  death.status = status;
  death.error_file = error_file;
  death.seen_ms = 1796079510000;
  return DescribeDeath(death).failure;
}

constexpr ExitStatus kExitThree{ExitStatus::Kind::kExited, 3, false};
constexpr ExitStatus kSegv{ExitStatus::Kind::kSignaled, SIGSEGV, false};

TEST_CASE("the root cause's record is copied with its exit code") {
  const TempDir dir;
  const std::string worker = dir.Write(
      "w.json",
      R"({"message":{"message":"only\nmessage","extraInfo":{"timestamp":"1234567890"}}})");
  const auto outcome = RecordWorkerFailure(dir.Path("out.json"), Failure(worker, kExitThree));
  REQUIRE(outcome);
  CHECK(outcome->written);
  CHECK(outcome->warnings.empty());
  // What torchrun 2.15 wrote for the same job.
  CHECK(dir.Read("out.json") ==
        R"({"message": {"message": "only\nmessage", "extraInfo": {"timestamp": "1234567890"}, )"
        R"("errorCode": 3}})");
  REQUIRE(RecordWorkerFailure(dir.Path("out.json"), Failure(worker, kSegv)));
  CHECK(dir.Read("out.json").find(R"("errorCode": -11}})") != std::string::npos);
}

TEST_CASE("a record of the string schema is copied unchanged, with a warning") {
  const TempDir dir;
  const std::string record = R"({"message": "line one\nline two", "timestamp": 1234567890})";
  const std::string worker = dir.Write("w.json", record);
  const auto outcome = RecordWorkerFailure(dir.Path("out.json"), Failure(worker, kExitThree));
  REQUIRE(outcome);
  CHECK(dir.Read("out.json") == record);
  REQUIRE(outcome->warnings.size() == 1);
  CHECK(outcome->warnings[0].find("no error code is added") != std::string::npos);
}

TEST_CASE("what the worker left as text is put into a record") {
  const TempDir dir;
  const std::string worker = dir.Write("w.json", "half {\"a");
  REQUIRE(RecordWorkerFailure(dir.Path("out.json"), Failure(worker, kExitThree)));
  CHECK(dir.Read("out.json") ==
        R"({"message": {"message": "half {\"a", "extraInfo": {"py_callstack": "half {\"a", )"
        R"("timestamp": "1796079510"}, "errorCode": 3}})");
}

TEST_CASE("an empty error file still gives a record") {
  const TempDir dir;
  const std::string worker = dir.Write("w.json", "");
  REQUIRE(RecordWorkerFailure(dir.Path("out.json"), Failure(worker, kSegv)));
  CHECK(dir.Read("out.json").find(R"("message": "Signal 11 (SIGSEGV) received by PID 0")") !=
        std::string::npos);
}

TEST_CASE("without a worker's file nothing is written, and without a path it is said") {
  const TempDir dir;
  const auto none = RecordWorkerFailure(dir.Path("out.json"), Failure("", kExitThree));
  REQUIRE(none);
  CHECK_FALSE(none->written);
  CHECK(none->warnings.empty());
  CHECK(dir.EntryCount() == 0);
  const std::string worker = dir.Write("w.json", R"({"message": "t"})");
  const auto unset = RecordWorkerFailure("", Failure(worker, kExitThree));
  REQUIRE(unset);
  CHECK_FALSE(unset->written);
  REQUIRE(unset->warnings.size() == 1);
  CHECK(unset->warnings[0].find("TORCHELASTIC_ERROR_FILE is not set") == 0);
}

TEST_CASE("any other error of the launcher is recorded in the same layout") {
  const TempDir dir;
  REQUIRE(RecordLauncherFailure(dir.Path("out.json"), {"rendezvous timed out", "", 12}));
  CHECK(dir.Read("out.json") ==
        R"({"message": {"message": "rendezvous timed out", "extraInfo": {"py_callstack": )"
        R"("rendezvous timed out", "timestamp": "12"}}})");
  const auto unset = RecordLauncherFailure("", {"x", "", 1});
  REQUIRE(unset);
  CHECK_FALSE(unset->written);
}

TEST_CASE("existing content is replaced at once, and told") {
  const TempDir dir;
  const std::string path = dir.Write("out.json", "{\"old\":\n1}");
  // A reader that opened it before still has the whole old content: the file was not truncated.
  const UniqueFd old(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto outcome = ReplaceFile(path, "new");
  REQUIRE(outcome);
  CHECK(dir.Read("out.json") == "new");
  std::array<char, 32> held{};
  CHECK(::read(old.get(), held.data(), held.size()) == 10);
  REQUIRE(outcome->warnings.size() == 1);
  CHECK(outcome->warnings[0] ==
        "error file '" + path + "' already exists and is replaced; it held: {\"old\": 1}");
  CHECK(dir.EntryCount() == 1);  // No temporary file is left.
}

TEST_CASE("what was there before is told in one short line, whatever it was") {
  const TempDir dir;
  const std::string path = dir.Write("out.json", std::string(1 << 20, '\xff'));
  const auto outcome = ReplaceFile(path, "new");
  REQUIRE(outcome);
  CHECK(outcome->warnings[0].size() < 2000);
  CHECK(ReplaceFile(dir.Write("empty", ""), "n")->warnings[0].find("(empty)") != std::string::npos);
}

TEST_CASE("the new file obeys the umask, as Python's open does") {
  const TempDir dir;
  const mode_t old_mask = ::umask(027);
  REQUIRE(ReplaceFile(dir.Path("out.json"), "x"));
  ::umask(old_mask);
  struct stat info {};
  REQUIRE(::stat(dir.Path("out.json").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777U) == 0640);
}

TEST_CASE("a path that cannot be written is an error with its reason") {
  const TempDir dir;
  const auto missing = ReplaceFile(dir.Path("no/such/out.json"), "x");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message.find("no such file or directory") != std::string::npos);
  const auto folder = ReplaceFile(dir.Path(""), "x");
  REQUIRE_FALSE(folder);
  CHECK(folder.error().message.find("is a directory") != std::string::npos);
}

TEST_CASE("a FIFO is never waited for, and a device is written in place") {
  const TempDir dir;
  REQUIRE(::mkfifo(dir.Path("fifo").c_str(), 0600) == 0);
  CHECK_FALSE(ReplaceFile(dir.Path("fifo"), "x"));
  const UniqueFd reader(::open(dir.Path("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  REQUIRE(ReplaceFile(dir.Path("fifo"), "x"));
  std::array<char, 4> read{};
  CHECK(::read(reader.get(), read.data(), read.size()) == 1);
  CHECK(ReplaceFile("/dev/null", "x"));
  struct stat info {};
  REQUIRE(::stat("/dev/null", &info) == 0);
  CHECK(S_ISCHR(info.st_mode));
}

}  // namespace
}  // namespace ddprun
