#include "launcher/script/local_rank_scan.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "launcher/script/python_source.h"
#include "tests/support/catch.h"

namespace ddprun {
namespace {

namespace fs = std::filesystem;

using Spellings = std::set<std::string>;

Spellings SpellingsOf(const LocalRankScan& scan) {
  Spellings spellings;
  for (const LocalRankDeclaration& one : scan.declarations) {
    if (!one.subcommand) {
      spellings.insert(one.spelling);
    }
  }
  return spellings;
}

Spellings Scan(std::string_view source) {
  return SpellingsOf(ScanForLocalRank(source));
}

std::string Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The words behind "# expect: " on the first line.
Spellings Expected(const std::string& text) {
  std::istringstream line(text.substr(0, text.find('\n')));
  Spellings words;
  for (std::string word; line >> word;) {
    if (word.substr(0, 2) == "--") {
      words.insert(word);
    }
  }
  return words;
}

int CheckFolder(const char* name) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(DDPRUN_TESTDATA) / "script" / name)) {
    const std::string text = Read(entry.path());
    CAPTURE(entry.path());
    CHECK(Scan(text) == Expected(text));
    CHECK(Scan("\xEF\xBB\xBF" + text) == Expected(text));
    ++files;
  }
  return files;
}

const Spellings kNothing;
const Spellings kUnderscore{"--local_rank"};
const Spellings kDash{"--local-rank"};

TEST_CASE("scripts that declare a local rank are recognised, as people write them") {
  CHECK(CheckFolder("declares") >= 30);
}

TEST_CASE("scripts that only mention a local rank declare nothing") {
  CHECK(CheckFolder("silent") >= 25);
}

TEST_CASE("the line and the way of a declaration are known") {
  const LocalRankScan scan = ScanForLocalRank(
      "import argparse\r\n'''\nx'''\n\np.add_argument(\n  '-r',\n  '--local_rank')");
  REQUIRE(scan.declarations.size() == 1);
  CHECK(scan.declarations[0].line == 7);
  CHECK(scan.declarations[0].source == LocalRankSource::kArgparse);
  CHECK(Describe("train.py", scan.declarations[0]) ==
        "train.py:7 declares --local_rank (argparse)");
}

TEST_CASE("an option of a subcommand is known but is not for the front") {
  const LocalRankScan scan = ScanForLocalRank(
      "s = parser.add_subparsers()\np = s.add_parser('train')\np.add_argument('--local_rank')\n");
  REQUIRE(scan.declarations.size() == 1);
  CHECK(scan.declarations[0].subcommand);
  CHECK_FALSE(scan.declared());
  CHECK(Describe("t.py", scan.declarations[0]) ==
        "t.py:3 declares --local_rank (argparse, of a subcommand)");
  CHECK(Scan("p = s.add_parser('x')\np = ArgumentParser()\np.add_argument('--local_rank')") ==
        kUnderscore);
}

TEST_CASE("declarations are read in the middle of other code") {
  CHECK(Scan("x = 1; p.add_argument('--local_rank'); y = 2") == kUnderscore);
  CHECK(Scan("if a: p.add_argument('--local-rank')") == kDash);
  CHECK(Scan("(lambda p: p.add_argument('--local_rank'))(q)") == kUnderscore);
  CHECK(Scan("[p.add_argument('--local_rank') for p in parsers]") == kUnderscore);
  CHECK(Scan("self.parser.add_argument('--local_rank', type=int)") == kUnderscore);
  CHECK(Scan("parsers[0].add_argument('--local_rank')") == kUnderscore);
  CHECK(Scan("add_argument(parser, '--local_rank')") == kUnderscore);
  CHECK(Scan("p.add_argument('--local_rank',)") == kUnderscore);
  CHECK(Scan("p.add_argument(*['--local_rank'],)") == kUnderscore);
  CHECK(Scan("p.add_argument('''--local_rank''' )") == kUnderscore);
  CHECK(Scan("p.add_argument('--\\x6cocal_rank')") == kUnderscore);
  CHECK(Scan("tf.app.flags.DEFINE_integer('local_rank', 0, '')") == kUnderscore);
  CHECK(Scan("tf.flags.DEFINE_string('local-rank', '', '')") == kDash);
  CHECK(Scan("\fp.add_argument('--local_rank')") == kUnderscore);
}

TEST_CASE("what is near a declaration but is none stays silent") {
  for (const char* text : {"p.add_argument('--local_rank' % x)",
                           "p.add_argument('--local_{}'.format('rank'))",
                           "p.add_argument(b'--local_rank')",
                           "p.add_argument(f'--local_{x}')",
                           "p.add_argument('--x', default='--local_rank')",
                           "p.add_argument('--Local_Rank')",
                           "p.add_argument('--local_rank ')",
                           "p.add_argument(['x', ['--local_rank']])",
                           "def add_argument(x='--local_rank'): pass",
                           "DEFINE_string('x', 'local_rank', '')",
                           "add_argument",
                           "add_argument(",
                           "add_argument = '--local_rank'",
                           "p.parse_args(['--local_rank=0'])",
                           "p.parse_args('--local_rank 0'.split())",
                           "x = '--local_rank' in known",
                           "if a == '--local_rank': pass",
                           "'--local_rank' in sys.path",
                           "click.option('--local_rank')",
                           "docopt('Usage: [--local_rank_of_node=N]')",
                           "assert '--local_rank' not in sys.argv2",
                           "for a in names:\n  a.startswith('--local_rank')",
                           "raise ValueError('--local_rank', sys.argv)",
                           "print('--local_rank' , sys.argv)",
                           "sys.argv.append('--local_rank')",
                           "x = sys.argv + ['--local_rank']",
                           "run('--local_rank', *sys.argv[1:])",
                           "sys.argv.index('--local_rank_id')"}) {
    CAPTURE(text);
    CHECK(Scan(text) == kNothing);
  }
}

TEST_CASE("looks into the command line are recognised in every order") {
  for (const char* text :
       {"'--local_rank' in sys.argv", "'--local_rank' not in sys.argv[1:]",
        "sys.argv[1] == '--local_rank'", "'--local_rank=0' == argv[1]",
        "i = sys.argv.index('--local_rank')", "sys.argv[i].startswith('--local_rank=')",
        "a = sys.argv[1]\nif 'local_rank' in a: pass",
        "for i, a in enumerate(sys.argv):\n  if a in ['--x', '--local_rank']: pass",
        "re.search('local_rank=(.*)', ' '.join(sys.argv))",
        "rest = sys.argv[1:]\nwhile rest[0] != '--local_rank': rest.pop(0)"}) {
    CAPTURE(text);
    CHECK(Scan(text) == kUnderscore);
  }
}

TEST_CASE("a broken or hostile file is read without failing, in bounded time") {
  const std::size_t many = kMaxPythonSourceBytes;
  std::vector<std::string> hostile;
  const auto repeat = [&](std::string_view piece) {
    std::string text;
    while (text.size() < many) {
      text += piece;
    }
    hostile.push_back(text);
  };
  for (const char* piece : {"(",
                            ")",
                            "f'{",
                            "f'{f'",
                            "add_argument(",
                            "getopt(a,b,[",
                            "docopt(x",
                            "'--local_rank' in ",
                            "a=",
                            "@a\n",
                            "for a in ",
                            "add_argument(X)\nX='--local_rank'\n",
                            "'local_rank'",
                            "\\\n",
                            "class A(\n",
                            "def a(",
                            "x:y=z\n",
                            "if 1 else ",
                            "match argv:\ncase '--local_rank':\n",
                            "import typer\n@a.command()\ndef f(local_rank=1):\n"}) {
    repeat(piece);
  }
  for (const std::string& text : hostile) {
    CAPTURE(text.substr(0, 40));
    const auto start = std::chrono::steady_clock::now();
    const LocalRankScan scan = ScanForLocalRank(text);
    CHECK(scan.declarations.size() <= LocalRankScan::kMaxDeclarations);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  }
}

TEST_CASE("a file beyond the limits is known to be read in part") {
  CHECK_FALSE(ScanForLocalRank(std::string(kMaxPythonSourceBytes + 1, '#')).complete);
  CHECK(ScanForLocalRank("x = 1").complete);
  CHECK(ScanForLocalRank("").complete);
}

}  // namespace
}  // namespace ddprun
