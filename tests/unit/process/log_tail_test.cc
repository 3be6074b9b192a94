#include "agent/process/log_tail.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "tests/support/catch.h"
#include "tests/support/logs/io.h"

namespace ddprun {
namespace {

using Lines = std::vector<std::string>;

Lines Tail(std::string_view content, const LogTailLimits& limits = {}) {
  const TempDir temp;
  WriteFile(temp / "log", content);
  return ReadLogTail(temp / "log", limits).value();
}

TEST_CASE("the last twenty lines are given, oldest first") {
  std::string content;
  for (int i = 0; i < 50; ++i) {
    content += fmt::format("line {}\n", i);
  }
  const Lines lines = Tail(content);
  REQUIRE(lines.size() == 20);
  CHECK(lines.front() == "line 30");
  CHECK(lines.back() == "line 49");
  CHECK(Tail("a\nb") == Lines{"a", "b"});
  CHECK(Tail("a\n\nb\n\n \n") == Lines{"a", "", "b"});
  CHECK(Tail("").empty());
  CHECK(Tail("\n\n").empty());
  CHECK(Tail("a\nb\n", {1, 100, 100}) == Lines{"b"});
  CHECK(Tail("a\n", {0, 100, 100}).empty());
}

TEST_CASE("only the end of a large file is read, and no line that began before") {
  CHECK(Tail("0123456789\nab\ncd\n", {20, 100, 8}) == Lines{"ab", "cd"});
  CHECK(Tail(std::string(100, 'x'), {20, 5, 10}) == Lines{"xxxxx..."});
}

TEST_CASE("long lines are cut, not inside a character") {
  CHECK(Tail("abcdef\n", {20, 3, 100}) == Lines{"abc..."});
  CHECK(Tail("ab\xC3\xA9z\n", {20, 3, 100}) == Lines{"ab..."});
}

TEST_CASE("what cannot be printed is replaced") {
  CHECK(Tail("a\x1b[2Jb\tc\xFF\n") == Lines{"a?[2Jb\tc\xEF\xBF\xBD"});
  CHECK(Tail(std::string_view("a\0b\n", 4)) == Lines{"a?b"});
}

TEST_CASE("of redrawn lines the final state is given") {
  CHECK(Tail("1%\r2%\r3%\nx\r\n50%\r") == Lines{"3%", "x", "50%"});
}

TEST_CASE("a file that cannot be read is an error with its name") {
  const TempDir temp;
  const auto missing = ReadLogTail(temp / "none", {});
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().message.find(temp / "none") != std::string::npos);
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK_FALSE(ReadLogTail(temp.path(), {}).has_value());
  REQUIRE(::mkfifo((temp / "fifo").c_str(), 0600) == 0);
  CHECK_FALSE(ReadLogTail(temp / "fifo", {}).has_value());
}

}  // namespace
}  // namespace ddprun
