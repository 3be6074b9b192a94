// Conformance numbers are those of the list in docs/protocol.md.

#include "rendezvous/store/request_parser.h"

#include <vector>

#include "tests/support/catch.h"
#include "tests/support/store_client/wire.h"

namespace ddprun {
namespace {

using wire::I64;
using wire::kHelloC;
using wire::List;
using wire::Message;
using wire::Str;
using wire::U64;

ParserSettings Mode(DialectMode mode) {
  ParserSettings settings;
  settings.mode = mode;
  return settings;
}

std::string Describe(const Request& request) {
  std::string text(LayoutOf(request.operation).name);
  text += "|" + std::string(request.key) + "|" + std::string(request.expected) + "|" +
          std::string(request.value) + "|" + std::to_string(request.number);
  const bool pairs = request.operation == Operation::kMultiSet;
  ItemReader items(request.items);
  for (std::size_t i = 0; i < request.count * (pairs ? 2 : 1); ++i) {
    text += "," + std::string(items.Next());
  }
  return text;
}

// Feeds the stream in pieces and describes what comes out; "refused: ..." ends it.
std::vector<std::string> Parse(const std::string& stream, std::size_t piece,
                               const ParserSettings& settings = {}) {
  RequestParser parser(settings);
  std::vector<std::string> found;
  std::string held;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    held += stream.substr(at, piece);
    for (;;) {
      const ParseResult result = parser.Next(held);
      if (result == ParseResult::kRefused) {
        found.push_back("refused: " + parser.refusal());
        return found;
      }
      if (result == ParseResult::kNeedMore) {
        CHECK(parser.missing() > 0);
        break;
      }
      found.push_back(Describe(parser.request()));
      held.erase(0, parser.request().size);
    }
  }
  return found;
}

std::vector<std::string> ParseAll(const std::string& stream, const ParserSettings& settings = {}) {
  return Parse(stream, stream.size(), settings);
}

bool IsRefused(const std::vector<std::string>& found) {
  return !found.empty() && found.back().rfind("refused: ", 0) == 0;
}

std::string EveryOperationOfC() {
  return kHelloC + wire::kPing + Message(1, Str("/k") + Str("v")) +
         Message(2, Str("/k") + Str("old") + Str("new")) + Message(3, Str("/k")) +
         Message(4, Str("init/") + I64(-7)) + Message(5, List({"/a", "/b"})) +
         Message(6, List({})) + Message(7) + Message(8, Str("/k")) + Message(9, Str("") + Str("")) +
         Message(10, List({"/a", "/a"})) +
         Message(11, U64(2) + Str("/a") + Str("1") + Str("/b") + Str("")) + Message(12) +
         Message(14, Str("/q") + Str("j")) + Message(15, Str("/q")) + Message(16, Str("/q")) +
         Message(17) + Message(18, Str("/b") + I64(3));
}

TEST_CASE("every operation of dialect C is read, wherever the stream is cut (conformance 1, 2)") {
  const std::vector<std::string> expected = {"VALIDATE||||0",
                                             "PING||||1",
                                             "SET|/k||v|0",
                                             "COMPARE_SET|/k|old|new|0",
                                             "GET|/k|||0",
                                             "ADD|init/|||-7",
                                             "CHECK||||0,/a,/b",
                                             "WAIT||||0",
                                             "GETNUMKEYS||||0",
                                             "DELETE_KEY|/k|||0",
                                             "APPEND||||0",
                                             "MULTI_GET||||0,/a,/a",
                                             "MULTI_SET||||0,/a,1,/b,",
                                             "CANCEL_WAIT||||0",
                                             "QUEUE_PUSH|/q||j|0",
                                             "QUEUE_POP|/q|||0",
                                             "QUEUE_LEN|/q|||0",
                                             "LIST_KEYS||||0",
                                             "BARRIER|/b|||3"};
  const std::string stream = EveryOperationOfC();
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    CAPTURE(piece);
    REQUIRE(Parse(stream, piece) == expected);
  }
}

TEST_CASE("the operations of dialects A and B are read, wherever the stream is cut") {
  const std::string a = Message(0, Str("/k") + Str("v")) +
                        Message(1, Str("/k") + Str("") + Str("x")) + Message(2, Str("/k")) +
                        Message(3, Str("init/") + I64(1)) + Message(4, List({"/x"})) +
                        Message(5, List({"/x", "/x"})) + Message(6) + Message(8, Str("/k"));
  const std::string b = Message(9, List({"/k"})) + Message(7, Str("/k")) +
                        Message(8, Str("/k") + Str("w")) + Message(10, U64(0)) + Message(11);
  for (const std::size_t piece : {1UL, 2UL, 3UL, 7UL, 1000UL}) {
    CHECK(Parse(a, piece) == std::vector<std::string>{"SET|/k||v|0", "COMPARE_SET|/k||x|0",
                                                      "GET|/k|||0", "ADD|init/|||1",
                                                      "CHECK||||0,/x", "WAIT||||0,/x,/x",
                                                      "GETNUMKEYS||||0", "DELETE_KEY|/k|||0"});
    CHECK(Parse(b, piece) == std::vector<std::string>{"MULTI_GET||||0,/k", "DELETE_KEY|/k|||0",
                                                      "APPEND|/k||w|0", "MULTI_SET||||0",
                                                      "CANCEL_WAIT||||0"});
  }
}

TEST_CASE("opcode 7 is WATCH_KEY first on a connection and DELETE_KEY later") {
  CHECK(ParseAll(Message(7, Str("/w")) + Message(7, Str("/x")) + Message(8, Str("/y"))) ==
        std::vector<std::string>{"WATCH_KEY|/w|||0", "WATCH_KEY|/x|||0", "DELETE_KEY|/y|||0"});
  CHECK(ParseAll(Message(6) + Message(7, Str("/x")) + Message(8, Str("/y") + Str("z"))) ==
        std::vector<std::string>{"GETNUMKEYS||||0", "DELETE_KEY|/x|||0", "APPEND|/y||z|0"});
}

TEST_CASE("opcode 11 alone makes the connection dialect B (conformance 9)") {
  CHECK(ParseAll(Message(11) + Message(7, Str("/x"))) ==
        std::vector<std::string>{"CANCEL_WAIT||||0", "DELETE_KEY|/x|||0"});
}

TEST_CASE("the 2.1 setting reads opcode 8 as APPEND and 7 as DELETE_KEY from the start") {
  ParserSettings settings;
  settings.legacy_is_2_1 = true;
  CHECK(ParseAll(Message(7, Str("/x")) + Message(8, Str("/k") + Str("w")), settings) ==
        std::vector<std::string>{"DELETE_KEY|/x|||0", "APPEND|/k||w|0"});
  CHECK(ParseAll(kHelloC + Message(8, Str("/k")), settings).back() == "DELETE_KEY|/k|||0");
}

TEST_CASE("a big-endian client is refused (conformance 3)") {
  const std::string hello("\x00\x3c\x85\xf7\xce", 5);
  CHECK(ParseAll(hello) == std::vector<std::string>{"refused: the client is big-endian"});
  CHECK(Parse(hello, 1, Mode(DialectMode::kOnly2x)) ==
        std::vector<std::string>{"refused: the client is big-endian"});
}

TEST_CASE("a hello with one bit off fails the key limit (conformance 4)") {
  for (std::size_t byte = 1; byte < 5; ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string hello = kHelloC;
      hello[byte] = static_cast<char>(hello[byte] ^ (1 << bit));
      CAPTURE(byte, bit);
      const std::vector<std::string> found = Parse(hello, 1);
      REQUIRE(IsRefused(found));
      CHECK(found.back().find("key of at least") != std::string::npos);
    }
  }
}

TEST_CASE("strangers are refused at their first byte (conformance 5)") {
  for (const char* first : {"G", "\x16", "S", "\x0c", "\xff"}) {
    CAPTURE(first);
    CHECK(IsRefused(ParseAll(first)));
  }
}

TEST_CASE("VALIDATE again is refused (conformance 7)") {
  CHECK(ParseAll(kHelloC + kHelloC).back() == "refused: VALIDATE after the first message");
}

TEST_CASE("unknown opcodes are refused in every dialect") {
  CHECK(ParseAll(kHelloC + Message(19)).back() == "refused: unknown opcode");
  CHECK(ParseAll(kHelloC + Message(255)).back() == "refused: unknown opcode");
  CHECK(ParseAll(Message(6) + Message(12)).back() == "refused: unknown opcode");
}

TEST_CASE("the strict modes take their own clients only") {
  const ParserSettings only_2x = Mode(DialectMode::kOnly2x);
  CHECK(ParseAll(kHelloC + Message(7), only_2x).back() == "GETNUMKEYS||||0");
  CHECK(Parse(kHelloC, 1, only_2x).back() == "VALIDATE||||0");
  CHECK(IsRefused(ParseAll(Message(6), only_2x)));
  CHECK(IsRefused(Parse(std::string("\x00\xcd", 2), 1, only_2x)));
  const ParserSettings only_1x = Mode(DialectMode::kOnly1x);
  CHECK(ParseAll(Message(6), only_1x).back() == "GETNUMKEYS||||0");
  CHECK(ParseAll(Message(0, Str("k") + Str("")), only_1x).back() == "SET|k|||0");
  CHECK(ParseAll(kHelloC, only_1x).back() ==
        "refused: only clients of torch 1.9 to 2.1 are taken here");
}

TEST_CASE("absurd lengths in every position are refused (conformance 43)") {
  const std::vector<std::string> before = {
      Message(1),                       // SET: key.
      Message(1, Str("k")),             // SET: value.
      Message(2),                       // COMPARE_SET: key.
      Message(2, Str("k")),             // COMPARE_SET: expected.
      Message(2, Str("k") + Str("e")),  // COMPARE_SET: desired.
      Message(3),
      Message(4),
      Message(5),                     // CHECK: count.
      Message(5, U64(2) + Str("k")),  // CHECK: second key.
      Message(6),
      Message(8),
      Message(9),
      Message(9, Str("k")),
      Message(10),
      Message(11),                     // MULTI_SET: count.
      Message(11, U64(1)),             // MULTI_SET: key.
      Message(11, U64(1) + Str("k")),  // MULTI_SET: value.
      Message(14),
      Message(14, Str("k")),
      Message(15),
      Message(16),
      Message(18),
  };
  for (const std::string& prefix : before) {
    for (const std::uint64_t length :
         {std::uint64_t{1} << 31, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
      CAPTURE(prefix.size(), static_cast<int>(prefix[0]), length);
      CHECK(IsRefused(Parse(kHelloC + prefix + U64(length), 1)));
    }
  }
}

TEST_CASE("the limits admit their own value and refuse one more") {
  ParserSettings settings;
  settings.limits = ParseLimits{4, 6, 3, 64};
  const auto parse = [&](const std::string& message) {
    return ParseAll(kHelloC + message, settings);
  };
  CHECK(parse(Message(3, Str("1234"))).back() == "GET|1234|||0");
  CHECK(IsRefused(parse(Message(3, Str("12345")))));
  CHECK(parse(Message(1, Str("k") + Str("123456"))).back() == "SET|k||123456|0");
  CHECK(IsRefused(parse(Message(1, Str("k") + Str("1234567")))));
  CHECK(parse(Message(5, List({"a", "b", "c"}))).back() == "CHECK||||0,a,b,c");
  CHECK(IsRefused(parse(Message(5, List({"a", "b", "c", "d"})))));
  CHECK(IsRefused(parse(Message(11, I64(-1)))));
  // 1 + 8 + 3 * (8 + 4 + 8 + x): the third pair crosses 64 bytes.
  const std::string pair = Str("1234") + Str("");
  CHECK_FALSE(IsRefused(parse(Message(11, U64(2) + pair + pair))));
  CHECK(parse(Message(11, U64(3) + pair + pair + pair)).back() ==
        "refused: a request of more than 64 bytes");
}

TEST_CASE("131072 keys in one request are taken and one more is refused (conformance 44)") {
  std::string keys;
  for (int i = 0; i < 131072; ++i) {
    keys += Str("");
  }
  CHECK_FALSE(IsRefused(ParseAll(kHelloC + Message(5, U64(131072) + keys))));
  CHECK(IsRefused(ParseAll(kHelloC + Message(5, U64(131073)))));
}

TEST_CASE("what is missing is known as soon as the length is") {
  RequestParser parser({});
  const std::string start = kHelloC;
  REQUIRE(parser.Next(start) == ParseResult::kRequest);
  const std::string message = Message(1, Str("k") + U64(1000) + "abc");
  REQUIRE(parser.Next(message) == ParseResult::kNeedMore);
  CHECK(parser.missing() == 997);
  CHECK(parser.dialect() == Dialect::kC);
  CHECK(parser.opcode() == 1);
}

}  // namespace
}  // namespace ddprun
