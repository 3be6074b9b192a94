#include "agent/process/log_line_assembler.h"

#include <fmt/format.h>

#include "tests/support/catch.h"

namespace ddprun {
namespace {

using std::chrono::milliseconds;

// Feeds an assembler and holds the time.
class Feeder {
 public:
  explicit Feeder(std::vector<std::string> needles = {}) : lines_("[r0]:", std::move(needles)) {}

  std::string operator()(std::string_view bytes) {
    LogLineOutput out;
    lines_.Feed(bytes, now_, out);
    filtered_ += out.filtered;
    return out.console;
  }

  // Lets time pass; what a timer of the pump would show meanwhile.
  std::string After(Duration duration) {
    const TimePoint end = now_ + duration;
    LogLineOutput out;
    while (lines_.deadline() && *lines_.deadline() <= end) {
      now_ = std::max(now_, *lines_.deadline());
      lines_.Tick(now_, out);
    }
    now_ = end;
    filtered_ += out.filtered;
    return out.console;
  }

  std::string Finish() {
    LogLineOutput out;
    lines_.Finish(out);
    filtered_ += out.filtered;
    return out.console;
  }

  bool idle() const { return !lines_.deadline(); }
  const std::string& filtered() const { return filtered_; }

 private:
  LogLineAssembler lines_;
  TimePoint now_{std::chrono::hours(1)};
  std::string filtered_;
};

TEST_CASE("whole lines get the prefix at once") {
  Feeder feed;
  CHECK(feed("a\nb\n") == "[r0]:a\n[r0]:b\n");
  CHECK(feed("\n\n") == "[r0]:\n[r0]:\n");
  CHECK(feed.idle());
}

TEST_CASE("a line that comes in pieces is shown once it is complete") {
  Feeder feed;
  CHECK(feed("hel").empty());
  CHECK(feed.After(milliseconds(700)).empty());
  CHECK(feed("lo\nwor") == "[r0]:hello\n");
  CHECK(feed("ld\n") == "[r0]:world\n");
  CHECK(feed.idle());
}

TEST_CASE("text without newline is shown within a second, and not again") {
  Feeder feed;
  CHECK(feed("Name: ").empty());
  CHECK(feed.After(milliseconds(1000)) == "[r0]:Name: \n");
  CHECK(feed.After(milliseconds(5000)).empty());
  SECTION("only the newline follows") {
    CHECK(feed("\nnext\n") == "[r0]:next\n");
  }
  SECTION("more text follows") {
    CHECK(feed("x\n\n") == "[r0]:x\n[r0]:\n");
  }
  SECTION("the end follows") {
    CHECK(feed.Finish().empty());
  }
}

TEST_CASE("an unfinished last line is completed at the end") {
  Feeder feed;
  CHECK(feed("tail").empty());
  CHECK(feed.Finish() == "[r0]:tail\n");
  CHECK(feed.Finish().empty());
  CHECK(feed("again\n") == "[r0]:again\n");
}

TEST_CASE("CRLF is a newline, also when it is cut in two") {
  Feeder feed;
  CHECK(feed("a\r\nb\r\n") == "[r0]:a\n[r0]:b\n");
  CHECK(feed("c\r").empty());
  CHECK(feed("\nd\n") == "[r0]:c\n[r0]:d\n");
  CHECK(feed("\r\n") == "[r0]:\n");
  CHECK(feed("e\r\r\n") == "[r0]:e\n");
}

TEST_CASE("of a redrawn line only the final state is shown") {
  Feeder feed;
  CHECK(feed("1%\r2%\r3%\n") == "[r0]:3%\n");
  CHECK(feed("\r1%\r2%\r3%\nnext\n") == "[r0]:3%\n[r0]:next\n");
  CHECK(feed("1%\r2%\r\nnext\n") == "[r0]:2%\n[r0]:next\n");
  CHECK(feed("1%\r2%\r").empty());
  CHECK(feed.Finish() == "[r0]:2%\n");
}

TEST_CASE("50 redraws in three seconds make at most five lines, the last one final") {
  Feeder feed;
  std::string console;
  for (int i = 1; i <= 50; ++i) {
    console += feed(fmt::format("\r{:3}%|###", 2 * i));
    console += feed.After(milliseconds(60));
  }
  console += feed("\n");
  const auto lines = std::count(console.begin(), console.end(), '\n');
  CHECK(lines >= 3);
  CHECK(lines <= 5);
  CHECK(console.substr(console.size() - 14) == "[r0]:100%|###\n");
  CHECK(console.find("100%") == console.rfind("100%"));
}

TEST_CASE("a state that was shown is not repeated by its newline") {
  Feeder feed;
  CHECK(feed("\r100%").empty());
  CHECK(feed.After(milliseconds(1500)) == "[r0]:100%\n");
  CHECK(feed("\nx\n") == "[r0]:x\n");
  CHECK(feed("50%\r").empty());
  CHECK(feed.After(milliseconds(1500)) == "[r0]:50%\n");
  CHECK(feed.After(milliseconds(1500)).empty());
  CHECK(feed("60%\r\n") == "[r0]:60%\n");
}

TEST_CASE("redraws are shown at most once a second") {
  Feeder feed;
  std::string console;
  for (int i = 0; i < 1000; ++i) {
    console += feed(fmt::format("{}\r", i));
    console += feed.After(milliseconds(10));
  }
  const auto lines = std::count(console.begin(), console.end(), '\n');
  CHECK(lines >= 9);
  CHECK(lines <= 10);
}

TEST_CASE("a bar that wipes itself leaves no blank line behind") {
  Feeder feed;
  CHECK(feed("\r50%").empty());
  CHECK(feed.After(milliseconds(1200)) == "[r0]:50%\n");
  CHECK(feed("\r    \r").empty());
  CHECK(feed.After(milliseconds(5000)).empty());
  CHECK(feed("done\n") == "[r0]:done\n");
}

TEST_CASE("a bar that is wiped between all redraws is still shown") {
  Feeder feed;
  std::string console;
  for (int i = 0; i < 100; ++i) {
    console += feed(fmt::format("\r{}%", i));
    console += feed.After(milliseconds(20));
    console += feed("\r     ");
    console += feed.After(milliseconds(30));
  }
  const auto lines = std::count(console.begin(), console.end(), '\n');
  CHECK(lines >= 4);
  CHECK(lines <= 5);
}

TEST_CASE("a redraw after text that was shown counts as a redraw") {
  Feeder feed;
  CHECK(feed("loading").empty());
  CHECK(feed.After(milliseconds(1000)) == "[r0]:loading\n");
  CHECK(feed("\r1%\r2%").empty());
  CHECK(feed("\r3%\n") == "[r0]:3%\n");
}

TEST_CASE("a line over the limit is shown in pieces, each with prefix") {
  Feeder feed;
  constexpr std::size_t kLength = 2 * LogLineAssembler::kMaxLine + 5;
  std::string console;
  SECTION("with its newline") {
    console = feed(std::string(kLength, 'x') + "\n");
  }
  SECTION("in small parts") {
    for (std::size_t at = 0; at < kLength; at += 4096) {
      console += feed(std::string(std::min<std::size_t>(4096, kLength - at), 'x'));
    }
    console += feed("\n");
  }
  const std::string piece = "[r0]:" + std::string(LogLineAssembler::kMaxLine, 'x') + "\n";
  CHECK(console == piece + piece + "[r0]:xxxxx\n");
  CHECK(feed("y\n") == "[r0]:y\n");
}

TEST_CASE("pieces and early text never end inside a character") {
  Feeder feed;
  std::string line = "a";
  while (line.size() < LogLineAssembler::kMaxLine + 10) {
    line += "\xE2\x82\xAC";
  }
  const std::string console = feed(line + "\n");
  CHECK(console.find("\xEF\xBF\xBD") == std::string::npos);
  CHECK(std::count(console.begin(), console.end(), '\n') == 2);

  CHECK(feed("x\xE2\x82").empty());
  CHECK(feed.After(milliseconds(1000)) == "[r0]:x\n");
  CHECK(feed("\xAC\n") == "[r0]:\xE2\x82\xAC\n");
}

TEST_CASE("invalid UTF-8 is replaced on the console") {
  Feeder feed;
  CHECK(feed("a\xFFz\n") == "[r0]:a\xEF\xBF\xBDz\n");
  CHECK(feed("\xE2\x82").empty());
  CHECK(feed.Finish() == "[r0]:\xEF\xBF\xBD\n");
}

TEST_CASE("NUL bytes and escapes pass") {
  Feeder feed;
  using namespace std::string_view_literals;
  CHECK(feed("\0\x1b[1mb\n"sv) == "[r0]:\0\x1b[1mb\n"sv);
}

TEST_CASE("lines that match a filter are duplicated with prefix") {
  Feeder feed({"a,b", "c"});
  CHECK(feed("a,b 1\nab\nxcx\n") == "[r0]:a,b 1\n[r0]:ab\n[r0]:xcx\n");
  CHECK(feed.filtered() == "[r0]:a,b 1\n[r0]:xcx\n");
}

TEST_CASE("the prefix is not matched, the empty filter matches all") {
  Feeder prefix({"r0"});
  CHECK(prefix("x\n") == "[r0]:x\n");
  CHECK(prefix.filtered().empty());
  Feeder all({""});
  CHECK(all("x\n\ny").size() == 13);
  CHECK(all.Finish() == "[r0]:y\n");
  CHECK(all.filtered() == "[r0]:x\n[r0]:\n[r0]:y\n");
}

TEST_CASE("filters go on when nobody reads the console") {
  LogLineAssembler lines("p:", {"x"});
  LogLineOutput out;
  out.want_console = false;
  lines.Feed("x1\ny\nx2\n", TimePoint{}, out);
  CHECK(out.console.empty());
  CHECK(out.filtered == "p:x1\np:x2\n");
}

}  // namespace
}  // namespace ddprun
