#include "rendezvous/base/text.h"

#include <cmath>

#include "tests/support/catch.h"

namespace ddprun {
namespace {

TEST_CASE("integers are read as Python's int reads them") {
  CHECK(ParsePythonInt("2") == 2);
  CHECK(ParsePythonInt(" 2 ") == 2);
  CHECK(ParsePythonInt("+1") == 1);
  CHECK(ParsePythonInt("-1") == -1);
  CHECK(ParsePythonInt("1_0") == 10);
  CHECK(ParsePythonInt("007") == 7);
  for (const char* bad : {"", " ", "0x2", "1e3", "1.5", "_1", "1_", "1__0", "+-1", "--1", "4(x2)",
                          "\xd9\xa3", "99999999999999999999"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParsePythonInt(bad).has_value());
  }
}

TEST_CASE("floats are read as Python's float reads them") {
  CHECK(ParsePythonFloat("0.1") == 0.1);
  CHECK(ParsePythonFloat(" -2.5e1 ") == -25.0);
  CHECK(ParsePythonFloat("1_0.5") == 10.5);
  CHECK(ParsePythonFloat("5.") == 5.0);
  CHECK(ParsePythonFloat(".5") == 0.5);
  CHECK(std::isinf(*ParsePythonFloat("inf")));
  CHECK(std::isinf(*ParsePythonFloat("1e999")));
  CHECK(std::isnan(*ParsePythonFloat("nan")));
  for (const char* bad : {"", "x", "0x1p3", "1e", "--1", "+-1", "1,5"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParsePythonFloat(bad).has_value());
  }
}

TEST_CASE("splitting keeps empty pieces and joining puts them back") {
  CHECK(Split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
  CHECK(Split("", ',') == std::vector<std::string>{""});
  CHECK(Join(Split("a,,b", ','), ",") == "a,,b");
  CHECK(Trim(" \t x y\n") == "x y");
  CHECK(Trim("\n ").empty());
}

TEST_CASE("the nearest word is offered only when it is near") {
  const std::vector<std::string> words{"--nproc-per-node", "--nnodes", "--max-restarts"};
  CHECK(NearestWord("--nproc-per-nod", words) == "--nproc-per-node");
  CHECK(NearestWord("--max-restart", words) == "--max-restarts");
  CHECK_FALSE(NearestWord("--zzzzzzzz", words).has_value());
}

}  // namespace
}  // namespace ddprun
