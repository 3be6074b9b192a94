#include "agent/core/json_text.h"

#include "tests/support/catch.h"

namespace ddprun {
namespace {

TEST_CASE("numbers that JSON does not know become null, outside of strings only") {
  CHECK(StrictJson(R"([NaN, Infinity, -Infinity, "NaN \" Infinity"])") ==
        R"([null, null, null, "NaN \" Infinity"])");
}

TEST_CASE("lone surrogates become visible text, pairs stay") {
  CHECK(StrictJson(R"("\udc80")") == R"("\\udc80")");
  CHECK(StrictJson(R"("\ud800x")") == R"("\\ud800x")");
  CHECK(StrictJson(R"("\ud83d\ude00 \u00e9 \\udc80 \n")") == R"("\ud83d\ude00 \u00e9 \\udc80 \n")");
  CHECK(StrictJson(R"("\ud83d\ud83d\ude00")") == R"("\\ud83d\ud83d\ude00")");
  CHECK(StrictJson(R"("\ud83d\u12")") == R"("\\ud83d\u12")");
  CHECK(StrictJson("\"\\") == "\"\\");
}

TEST_CASE("the limits are exact") {
  const std::string deepest = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  CHECK(StrictJson(deepest) == deepest);
  CHECK_FALSE(StrictJson("[" + deepest + "]").has_value());
  CHECK(StrictJson("]]]]" + deepest).has_value());
  CHECK(StrictJson(std::string(kMaxJsonMembers, ':')).has_value());
  CHECK_FALSE(StrictJson(std::string(kMaxJsonMembers + 1, ':')).has_value());
  CHECK(StrictJson("\"" + std::string(2 * kMaxJsonMembers, ':') + std::string(200, '[') + "\"")
            .has_value());
}

TEST_CASE("compact JSON gets Python's blanks, outside of strings only") {
  CHECK(WithPythonSpacing(R"({"a,b:c\"":[1,2],"d\\":{}})") == R"({"a,b:c\"": [1, 2], "d\\": {}})");
}

}  // namespace
}  // namespace ddprun
