#include "agent/process/log_line_assembler.h"

#include <rapidcheck.h>

#include <algorithm>

#include "agent/process/log_utf8.h"
#include "tests/support/catch.h"

namespace ddprun {
namespace {

constexpr const char* kPrefix = "[default3]:";

// Bytes in which line ends, carriage returns, blanks and broken characters are common.
std::string AnyOutput(const std::string& alphabet) {
  std::string bytes;
  for (const std::size_t index : *rc::gen::container<std::vector<std::size_t>>(
           rc::gen::inRange<std::size_t>(0, alphabet.size()))) {
    bytes += alphabet[index];
  }
  return bytes;
}

const std::string& WithReturns() {
  static const std::string alphabet = "ab \n\n\r\r\xC3\xA9\xE2\x82\xFF";
  return alphabet;
}

const std::string& Plain() {
  static const std::string alphabet = "abc \n\n";
  return alphabet;
}

// The text in parts of random size; now and then time passes, if `ticks`.
std::string Assemble(std::string_view bytes, bool ticks) {
  LogLineAssembler lines(kPrefix, {});
  LogLineOutput out;
  TimePoint now{};
  while (!bytes.empty()) {
    const std::size_t size = *rc::gen::inRange<std::size_t>(1, bytes.size() + 1);
    lines.Feed(bytes.substr(0, size), now, out);
    bytes.remove_prefix(size);
    if (ticks) {
      now += std::chrono::milliseconds(*rc::gen::inRange(0, 1200));
      lines.Tick(now, out);
    }
  }
  lines.Finish(out);
  return out.console;
}

std::string FinalState(std::string line) {
  while (!line.empty() && line.back() == '\r') {
    line.pop_back();
  }
  return line.substr(line.rfind('\r') + 1);
}

// What a console must show of the bytes if no time passes.
std::string Expected(std::string bytes) {
  std::string console;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string state = FinalState(bytes.substr(0, end));
    if (end != std::string::npos || !state.empty()) {
      console += kPrefix;
      AppendAsUtf8(console, state);
      console += '\n';
    }
    bytes.erase(0, end == std::string::npos ? end : end + 1);
  }
  return console;
}

TEST_CASE("without time passing, the console does not depend on how the output arrives") {
  CHECK(rc::check([] {
    const std::string bytes = AnyOutput(WithReturns());
    RC_ASSERT(Assemble(bytes, false) == Expected(bytes));
  }));
}

TEST_CASE("however output arrives, each console line has one prefix and no text is lost") {
  CHECK(rc::check([] {
    const std::string bytes = AnyOutput(Plain());
    std::string console = Assemble(bytes, true);
    std::string text;
    while (!console.empty()) {
      const std::size_t end = console.find('\n');
      RC_ASSERT(end != std::string::npos);
      RC_ASSERT(console.rfind(kPrefix, 0) == 0U);
      text += console.substr(std::string(kPrefix).size(), end - std::string(kPrefix).size());
      console.erase(0, end + 1);
    }
    std::string expected = bytes;
    expected.erase(std::remove(expected.begin(), expected.end(), '\n'), expected.end());
    RC_ASSERT(text == expected);
  }));
}

TEST_CASE("however redraws arrive, the last state of each line is shown") {
  CHECK(rc::check([] {
    const std::string line = AnyOutput("ab\r\r") + "z";
    const std::string console = Assemble(line + "\n", true);
    const std::string last = kPrefix + FinalState(line) + "\n";
    RC_ASSERT(console.size() >= last.size());
    // Text that was shown before a redraw began may hold the first part of the state.
    RC_ASSERT(console.substr(console.size() - 2) == "z\n");
    if (line.find('\r') != std::string::npos) {
      RC_ASSERT(console.substr(console.size() - last.size()) == last);
    }
  }));
}

TEST_CASE("the console always gets valid UTF-8") {
  CHECK(rc::check([] {
    const std::string console = Assemble(AnyOutput(WithReturns()), true);
    std::string again;
    AppendAsUtf8(again, console);
    RC_ASSERT(again == console);
  }));
}

}  // namespace
}  // namespace ddprun
