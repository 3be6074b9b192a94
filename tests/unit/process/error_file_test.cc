#include "agent/process/error_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace ddprun {
namespace {

using std::chrono::seconds;

std::string Record(const std::string& message) {
  return R"({"message": )" + message + "}";
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("the object schema gives the traceback, indented, and its time") {
  const auto reading = ParseErrorFile(
      R"({"message": {"message": "RuntimeError: bad\nthing", "extraInfo": )"
      R"({"py_callstack": "Traceback:\n  File\nRuntimeError: bad\n", "timestamp": "1796079506"}}})");
  CHECK(reading.present);
  CHECK(reading.message == "Traceback:\n    File\n  RuntimeError: bad\n  ");
  CHECK(reading.headline == "RuntimeError: bad");
  CHECK(reading.timestamp == 1796079506);
  CHECK_FALSE(reading.string_schema);
  CHECK(reading.warning.empty());
  CHECK(
      reading.record ==
      R"({"message": {"message": "RuntimeError: bad\nthing", "extraInfo": )"
      R"({"py_callstack": "Traceback:\n  File\nRuntimeError: bad\n", "timestamp": "1796079506"}}})");
}

TEST_CASE("the string schema gives the text as it is") {
  const auto reading = ParseErrorFile("{\"message\":\"one\\ntwo\",\"timestamp\":1234567890}\n");
  CHECK(reading.message == "one\ntwo");
  CHECK(reading.headline == "one");
  CHECK(reading.timestamp == 1234567890);
  CHECK(reading.string_schema);
  CHECK(reading.record == R"({"message": "one\ntwo", "timestamp": 1234567890})");
  CHECK_FALSE(ParseErrorFile(R"({"message": "t"})").timestamp.has_value());
}

TEST_CASE("without a traceback the text is shown, and without that what torch shows") {
  CHECK(ParseErrorFile(Record(R"({"message": "a\nb"})")).message == "a\n  b");
  CHECK(ParseErrorFile(Record("{}")).message == "<N/A>");
  CHECK(ParseErrorFile(Record(R"({"message": 3, "extraInfo": [1]})")).message == "<N/A>");
  CHECK(
      ParseErrorFile(Record(R"({"message": "t", "extraInfo": {"py_callstack": null}})")).message ==
      "t");
}

TEST_CASE("a time may be text, an integer or a fraction") {
  const auto time = [](const std::string& value) {
    return ParseErrorFile(R"({"message": "t", "timestamp": )" + value + "}");
  };
  CHECK(time("\"17\"").timestamp == 17);
  CHECK(time("\" 1_7 \"").timestamp == 17);
  CHECK(time("17").timestamp == 17);
  CHECK(time("17.9").timestamp == 17);
  CHECK(time("-17.9").timestamp == -17);
  CHECK(time("253402214400").timestamp == 253402214400);
  for (const char* absurd :
       {"NaN", "Infinity", "-Infinity", "null", "true", "[]", "{}", "\"\"", "\"soon\"", "1e300",
        "-1e300", "253402214401", "1796079506000", "99999999999999999999999", "\"nan\""}) {
    CAPTURE(absurd);
    CHECK_FALSE(time(absurd).timestamp.has_value());
    CHECK(time(absurd).message == "t");
    CHECK(Contains(time(absurd).warning, "which is no time"));
  }
}

TEST_CASE("Python's own JSON is understood where strict JSON is not") {
  const auto reading = ParseErrorFile(
      "{\"message\": {\"message\": \"OSError: 'a\\udc80b' \\ud83d\\ude00 \\ud800\", \"loss\": "
      "NaN}}");
  CHECK(reading.warning.empty());
  CHECK(reading.message == "OSError: 'a\\udc80b' \xf0\x9f\x98\x80 \\ud800");
  CHECK(Contains(reading.record, "\"loss\": null"));
}

TEST_CASE("what is no record is used as text, with the reason") {
  struct Case {
    std::string bytes;
    std::string shown;
    std::string why;
  };
  const std::vector<Case> cases{
      {R"({"message": {"message": "Runt)", R"({"message": {"message": "Runt)", "is not valid JSON"},
      {"boom\nhere", "boom\n  here", "is not valid JSON"},
      {"[1]", "[1]", "has no member \"message\""},
      {"\"text\"", "\"text\"", "has no member \"message\""},
      {R"({"msg": 1})", R"({"msg": 1})", "has no member \"message\""},
      {Record("null"), Record("null"), "neither text nor an object"},
      {Record("[1]"), Record("[1]"), "neither text nor an object"},
      {Record("1e999"), Record("1e999"), "is not valid JSON"},
      {std::string("a\0b\x1b[31mc\xff", 10), "a?bc\xef\xbf\xbd", "is not valid JSON"}};
  for (const Case& one : cases) {
    CAPTURE(one.bytes);
    const auto reading = ParseErrorFile(one.bytes);
    CHECK(reading.present);
    CHECK(reading.message == one.shown);
    CHECK_FALSE(reading.headline.empty());
    CHECK(reading.record.empty());
    CHECK_FALSE(reading.timestamp.has_value());
    CHECK(Contains(reading.warning, one.why));
    CHECK(Contains(reading.warning, "so it is used as text"));
  }
}

TEST_CASE("an empty file is present and says nothing") {
  for (const char* empty : {"", " \n\t"}) {
    const auto reading = ParseErrorFile(empty);
    CHECK(reading.present);
    CHECK(reading.message.empty());
    CHECK(reading.headline.empty());
    CHECK(reading.warning == "is empty");
  }
}

TEST_CASE("deep nesting and countless members are refused before they are parsed") {
  const std::string deep = Record(std::string(1000000, '[') + std::string(1000000, ']'));
  CHECK(Contains(ParseErrorFile(deep).warning, "nested deeper than 100"));
  CHECK(ParseErrorFile(Record("{\"a\": " + std::string(98, '[') + std::string(98, ']') + "}"))
            .warning.empty());
  std::string wide = "{\"a\": 0";
  for (int i = 0; i < 100000; ++i) {
    wide += ", \"" + std::to_string(i) + "\": 0";
  }
  CHECK(Contains(ParseErrorFile(Record(wide + "}")).warning, "more than 4096 members"));
}

TEST_CASE("invalid UTF-8 inside of a record makes it text") {
  const auto reading = ParseErrorFile(Record("\"caf\xe9\""));
  CHECK(reading.message == Record("\"caf\xef\xbf\xbd\""));
  CHECK(Contains(reading.warning, "is not valid JSON"));
}

TEST_CASE("a headline is one short line") {
  const auto reading = ParseErrorFile(Record("\"\\n  " + std::string(2000, 'x') + "\""));
  CHECK(reading.headline.size() == 500);
  CHECK(Contains(reading.headline, "xxx..."));
}

TEST_CASE("no path and no file are nothing, without a word") {
  const TempDir dir;
  for (const std::string& path : {std::string(), dir.Path("absent.json")}) {
    const auto reading = ReadErrorFile(path);
    CHECK_FALSE(reading.present);
    CHECK(reading.warning.empty());
  }
}

TEST_CASE("only regular files are opened") {
  const TempDir dir;
  REQUIRE(::mkfifo(dir.Path("fifo").c_str(), 0600) == 0);
  REQUIRE(::symlink("loop", dir.Path("loop").c_str()) == 0);
  REQUIRE(::symlink("/dev/zero", dir.Path("zero").c_str()) == 0);
  REQUIRE(::symlink("good", dir.Path("link").c_str()) == 0);
  REQUIRE(::mkdir(dir.Path("dir").c_str(), 0700) == 0);
  dir.Write("good", R"({"message": "t"})");
  const auto warning = [&dir](const char* name) {
    const auto reading = ReadErrorFile(dir.Path(name));
    CHECK_FALSE(reading.present);
    return reading.warning;
  };
  CHECK(warning("fifo") == "error file '" + dir.Path("fifo") + "' is a FIFO, ignoring it");
  CHECK(Contains(warning("dir"), "' is a directory, ignoring it"));
  CHECK(Contains(warning("zero"), "' is a device, ignoring it"));
  CHECK(Contains(warning("loop"), "' is unreadable: too many levels of symbolic links, ignoring"));
  CHECK(Contains(warning("good/x"), "' is unreadable: not a directory, ignoring it"));
  CHECK(ReadErrorFile(dir.Path("link")).message == "t");
}

TEST_CASE("a giant file costs its first megabytes and no time") {
  const TempDir dir;
  const std::string path = dir.Write("big", "start of it\n");
  REQUIRE(::truncate(path.c_str(), off_t{50} << 30U) == 0);
  const auto begin = std::chrono::steady_clock::now();
  const auto reading = ReadErrorFile(path);
  CHECK(std::chrono::steady_clock::now() - begin < seconds(2));
  CHECK(reading.present);
  CHECK(reading.headline == "start of it");
  CHECK(reading.message.size() < 2 * kMaxErrorText);
  CHECK(Contains(reading.warning, "' is longer than 4 MiB, so it is used as text"));
}

TEST_CASE("a record just below the limit is read whole") {
  const TempDir dir;
  const std::string text(kMaxErrorFileBytes - 100, 'x');
  const auto begin = std::chrono::steady_clock::now();
  const auto reading = ReadErrorFile(dir.Write("r", Record("\"" + text + "\"")));
  CHECK(std::chrono::steady_clock::now() - begin < seconds(2));
  CHECK(reading.message == text);
  CHECK(reading.warning.empty());
}

TEST_CASE("the time of the last change is read with the file") {
  const TempDir dir;
  const std::string path = dir.Write("r", Record("\"t\""));
  const timespec times[2] = {{1000, 0}, {1234, 567000000}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  CHECK(ReadErrorFile(path).written_ms == 1234567);
}

WorkerDeath Death(ExitStatus status, const std::string& error_file = "") {
  WorkerDeath death;
  death.local_rank = 1;
  death.global_rank = 5;
  death.pid = 42;
  death.status = status;
  death.error_file = error_file;
  death.seen_ms = 1796079510900;
  return death;
}

TEST_CASE("a death without a record is described by its status") {
  const auto killed = DescribeDeath(Death({ExitStatus::Kind::kSignaled, SIGSEGV, true})).failure;
  CHECK(killed.message == "Signal 11 (SIGSEGV) received by PID 42");
  CHECK(killed.timestamp == 1796079510);
  CHECK(killed.seen_ms == 1796079510900);
  CHECK(killed.recorded_ms == 0);
  CHECK(killed.error_file.empty());
  CHECK_FALSE(killed.has_record());
  CHECK(killed.global_rank == 5);
  CHECK(killed.local_rank == 1);
  const auto exited = DescribeDeath(Death({ExitStatus::Kind::kExited, 7, false})).failure;
  CHECK(exited.message == kNoTracebackHint);
}

TEST_CASE("a death with a record is described by that") {
  const TempDir dir;
  const std::string path = dir.Write("e.json", R"({"message": "t", "timestamp": 5})");
  const auto described = DescribeDeath(Death({ExitStatus::Kind::kExited, 7, false}, path));
  CHECK(described.failure.message == "t");
  CHECK(described.failure.timestamp == 5);
  CHECK(described.failure.error_file == path);
  CHECK(described.failure.recorded_ms > 0);
  CHECK(described.failure.has_record());
  CHECK(described.warning.empty());
}

TEST_CASE("a string record without a time is of 1970, as in torch, unless we stopped the worker") {
  const TempDir dir;
  WorkerDeath death = Death({ExitStatus::Kind::kExited, 7, false}, dir.Write("e", Record("\"t\"")));
  CHECK(DescribeDeath(death).failure.timestamp == 0);
  death.stopped_by_agent = true;
  CHECK(DescribeDeath(death).failure.timestamp == 1796079510);
}

TEST_CASE("an absurd time or unparsable text leaves the moment of the death") {
  const TempDir dir;
  const ExitStatus status{ExitStatus::Kind::kExited, 7, false};
  const auto absurd =
      DescribeDeath(Death(status, dir.Write("a", R"({"message": "t", "timestamp": 1e300})")));
  CHECK(absurd.failure.timestamp == 1796079510);
  CHECK(Contains(absurd.warning, "error file '" + dir.Path("a") + "' has the timestamp 1e+300"));
  CHECK(DescribeDeath(Death(status, dir.Write("b", "half"))).failure.timestamp == 1796079510);
}

TEST_CASE("an empty error file keeps its path and the status' message") {
  const TempDir dir;
  const auto described =
      DescribeDeath(Death({ExitStatus::Kind::kSignaled, SIGKILL, false}, dir.Write("e", "")));
  CHECK(described.failure.error_file == dir.Path("e"));
  CHECK(described.failure.message == "Signal 9 (SIGKILL) received by PID 42");
  CHECK(described.warning == "error file '" + dir.Path("e") + "' is empty");
}

}  // namespace
}  // namespace ddprun
