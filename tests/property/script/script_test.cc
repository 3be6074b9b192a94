#include <rapidcheck.h>

#include "launcher/script/local_rank_scan.h"
#include "launcher/script/python_tokens.h"
#include "launcher/script/rejected_local_rank.h"
#include "launcher/script/worker_command.h"
#include "tests/support/catch.h"

namespace ddprun {
namespace {

// Texts out of the pieces that matter, in any order.
rc::Gen<std::string> PythonLike() {
  const auto piece = rc::gen::element<std::string>(
      "'", "\"", "'''", "\"\"\"", "f'", "{", "}", "(", ")", "[", "]", "\\", "\n", "\r\n", "#", ",",
      "=", ":", ".", " ", "add_argument", "--local_rank", "local_rank", "in", "sys.argv", "for",
      "def ", "class ", "@", "if ", " else ", "x", "\x80", "docopt", "getopt", "DEFINE_x");
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece),
                      [](const std::vector<std::string>& pieces) {
                        std::string text;
                        for (const std::string& one : pieces) {
                          text += one;
                        }
                        return text;
                      });
}

TEST_CASE("tokens are pieces of the source in order and their lines never go back") {
  CHECK(rc::check([] {
    const std::string source = *PythonLike();
    const char* at = source.data();
    std::uint32_t line = 1;
    for (const PythonToken& token : TokenizePython(source).tokens) {
      RC_ASSERT(token.text.data() >= at);
      RC_ASSERT(token.line >= line);
      at = token.text.data() + token.text.size();
      line = token.line;
    }
    RC_ASSERT(at <= source.data() + source.size());
  }));
}

TEST_CASE("a declaration is found behind any complete lines and never in a comment") {
  CHECK(rc::check([] {
    const std::string name = *rc::gen::element<std::string>("--local_rank", "--local-rank");
    const std::string quote = *rc::gen::element<std::string>("'", "\"", "'''", "\"\"\"");
    const std::string before =
        *rc::gen::element<std::string>("", "x = {1: [2, (3)]}\n", "'''text'''\n", "# '''\n",
                                       "y = f\"{a['b']:>{c}}\"\n", "z = 1\r\n");
    const std::string call = "p.add_argument(" + quote + name + quote + ")";
    RC_ASSERT(ScanForLocalRank(before + call).Declares(name));
    RC_ASSERT(ScanForLocalRank(before + "# " + call).declarations.empty());
  }));
}

TEST_CASE("scanning any text ends with sane declarations") {
  CHECK(rc::check([] {
    const std::string source = *PythonLike();
    const auto lines = static_cast<std::uint32_t>(source.size() + 1);
    for (const LocalRankDeclaration& one : ScanForLocalRank(source).declarations) {
      RC_ASSERT(one.spelling == kLocalRankUnderscore || one.spelling == kLocalRankDash);
      RC_ASSERT(one.line >= 1 && one.line <= lines);
    }
  }));
}

TEST_CASE("a text without a dollar is no template, and doubled dollars survive as one") {
  CHECK(rc::check([](const std::string& text) {
    std::string plain;
    std::string escaped;
    for (const char c : text) {
      plain += c;
      escaped += c == '$' ? std::string("$$") : std::string(1, c);
    }
    RC_ASSERT(SubstituteLocalRank(escaped, 3) == plain);
  }));
}

}  // namespace
}  // namespace ddprun
