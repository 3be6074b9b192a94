#include "agent/core/clean_text.h"

#include "agent/core/rank_text.h"
#include "tests/support/catch.h"

namespace ddprun {
namespace {

constexpr const char* kMark = "\xef\xbf\xbd";

TEST_CASE("well-formed UTF-8 stays, every other byte becomes a mark") {
  for (const char* good : {"", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                           "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf", "\xe0\xa0\x80"}) {
    CHECK(ReplaceInvalidUtf8(good) == good);
  }
  CHECK(ReplaceInvalidUtf8("a\xff"
                           "b") == std::string("a") + kMark + "b");
  // Overlong, surrogate, above U+10FFFF, truncated, a lone continuation.
  for (const char* bad : {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xf0\x8f\x80\x80", "\xe2\x82", "\x80", "\xf5\x80\x80\x80"}) {
    const std::string text = ReplaceInvalidUtf8(bad);
    CAPTURE(text);
    CHECK(CountCodePoints(text) == std::string(bad).size());
    CHECK(text.compare(0, 3, kMark) == 0);
  }
}

TEST_CASE("shortening counts characters and never cuts one") {
  CHECK(Shorten("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 5).size() == 10);
  CHECK(Shorten("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 4) == "\xc3\xa9...");
  CHECK(Shorten("abcdef", 2) == "...");
  CHECK(Shorten("", 0).empty());
}

TEST_CASE("a line is shown as the terminal would have left it") {
  CHECK(ScreenLine("10%\r50%\r100%\r", 80) == "100%");
  CHECK(ScreenLine("\x1b[31mred\x1b[0m \x1b]0;title\x07t\x1b]0;x\x1b\\u\x1b(B", 80) == "red tuB");
  CHECK(ScreenLine("a\x1b", 80) == "a");
  CHECK(ScreenLine("a\x1b[31", 80) == "a");
  CHECK(ScreenLine("a\x1b]0;t", 80) == "a");
  CHECK(ScreenLine("a\tb\x07\x7f\xc2\x9b", 80) == "a\tb???");
  CHECK(ScreenLine("\xff", 80) == kMark);
  CHECK(ScreenLine(std::string(100, 'x'), 10) == "xxxxxxx...");
}

TEST_CASE("the last lines are taken without the empty end") {
  using Lines = std::vector<std::string>;
  CHECK(LastScreenLines("a\nb\n\nc\n\r\n\n", 3, 80) == Lines{"b", "", "c"});
  CHECK(LastScreenLines("a\nb", 5, 80) == Lines{"a", "b"});
  CHECK(LastScreenLines("\na", 5, 80) == Lines{"", "a"});
  CHECK(LastScreenLines("\n\n", 5, 80).empty());
  CHECK(LastScreenLines("a", 0, 80).empty());
}

TEST_CASE("lower case is ASCII's") {
  CHECK(LowerCase("AbZ[\xc3\x89") == "abz[\xc3\x89");
}

TEST_CASE("ranks are put in words") {
  CHECK(DescribeRanks({3}) == "rank 3");
  CHECK(DescribeRanks({8, 1, 0, 2, 2}) == "ranks 0-2, 8");
  std::vector<std::uint32_t> odd;
  for (std::uint32_t i = 0; i < 100; ++i) {
    odd.push_back(2 * i + 1);
  }
  CHECK(DescribeRanks(odd) == "ranks 1, 3, 5, 7, 9, 11, 13, 15, ...");
}

}  // namespace
}  // namespace ddprun
