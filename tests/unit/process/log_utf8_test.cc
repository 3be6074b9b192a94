#include "agent/process/log_utf8.h"

#include "tests/support/catch.h"

namespace ddprun {
namespace {

std::string Clean(std::string_view bytes) {
  std::string text;
  AppendAsUtf8(text, bytes);
  return text;
}

constexpr const char* kR = "\xEF\xBF\xBD";

TEST_CASE("valid UTF-8 is left as it is") {
  for (const char* text :
       {"", "plain", "0123456789abcdef\xC3\xA9", "\xE2\x82\xAC\xF0\x9F\x98\x80 end",
        "\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF", "\xEF\xBF\xBD"}) {
    CHECK(Clean(text) == text);
  }
}

// The expected values are what bytes.decode(errors="replace") gives in Python 3.11.
TEST_CASE("invalid parts are replaced as Python replaces them") {
  const std::string r = kR;
  CHECK(Clean("\xFF\xFE") == r + r);
  CHECK(Clean("\x80") == r);
  CHECK(Clean("\xC0\xAF") == r + r);
  CHECK(Clean("\xE0\x80\x80") == r + r + r);
  CHECK(Clean("\xED\xA0\x80") == r + r + r);
  CHECK(Clean("\xF0\x9F\x98") == r);
  CHECK(Clean("\xF0\x9F\x98z") == r + "z");
  CHECK(Clean("\xE2\x82z") == r + "z");
  CHECK(Clean("\xE2z") == r + "z");
  CHECK(Clean("\xC3\xC3\xA9") == r + "\xC3\xA9");
  CHECK(Clean("\xF4\x90\x80\x80") == r + r + r + r);
  CHECK(Clean("\xF5\x80") == r + r);
  CHECK(Clean("12345678\xE1\x80"
              "90") == "12345678" + r + "90");
}

TEST_CASE("a character that has only begun is found at the end") {
  CHECK(UnfinishedUtf8("") == 0);
  CHECK(UnfinishedUtf8("abc") == 0);
  CHECK(UnfinishedUtf8("a\xC3\xA9") == 0);
  CHECK(UnfinishedUtf8("a\xC3") == 1);
  CHECK(UnfinishedUtf8("a\xE2\x82") == 2);
  CHECK(UnfinishedUtf8("a\xF0\x9F\x98") == 3);
  CHECK(UnfinishedUtf8("\xF0\x9F\x98\x80") == 0);
  CHECK(UnfinishedUtf8("\xFF") == 0);
  CHECK(UnfinishedUtf8("\xC0") == 0);
  CHECK(UnfinishedUtf8("\x80\x80\x80\x80") == 0);
  CHECK(UnfinishedUtf8("\xE0\x80") == 0);
}

TEST_CASE("ASCII is recognised at any length") {
  for (std::size_t length = 0; length < 40; ++length) {
    std::string text(length, 'a');
    CHECK(IsAscii(text));
    if (length != 0) {
      text.back() = '\x80';
      CHECK_FALSE(IsAscii(text));
    }
  }
}

}  // namespace
}  // namespace ddprun
