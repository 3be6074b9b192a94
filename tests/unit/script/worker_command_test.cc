#include "launcher/script/worker_command.h"

#include "tests/support/catch.h"

namespace ddprun {
namespace {

using Argv = std::vector<std::string>;
using Kind = WorkerTarget::Kind;

Argv Build(Kind kind, std::string name, Argv args, std::uint32_t rank,
           std::optional<std::string> local_rank_argument = std::nullopt) {
  return BuildWorkerArgv(WorkerCommand{"py", WorkerTarget{kind, std::move(name), std::move(args)},
                                       local_rank_argument},
                         rank);
}

TEST_CASE("each mode has the argv of torchrun") {
  CHECK(Build(Kind::kScript, "train.py", {"a", "--b", "c d"}, 0) ==
        Argv{"py", "-u", "train.py", "a", "--b", "c d"});
  CHECK(Build(Kind::kModule, "pkg.main", {"z"}, 0) == Argv{"py", "-u", "-m", "pkg.main", "z"});
  CHECK(Build(Kind::kProgram, "echo", {"x"}, 0) == Argv{"echo", "x"});
}

TEST_CASE("the local rank goes directly behind the name, before the user's arguments") {
  const std::optional<std::string> added = "--local-rank=${local_rank}";
  CHECK(Build(Kind::kScript, "env.py", {"a", "b"}, 3, added) ==
        Argv{"py", "-u", "env.py", "--local-rank=3", "a", "b"});
  CHECK(Build(Kind::kModule, "env", {"a"}, 1, added) ==
        Argv{"py", "-u", "-m", "env", "--local-rank=1", "a"});
  const Argv run_path = Build(Kind::kRunPath, "env.py", {"a"}, 2, added);
  REQUIRE(run_path.size() == 7);
  CHECK(run_path[2] == "-c");
  CHECK(Argv(run_path.begin() + 4, run_path.end()) == Argv{"env.py", "--local-rank=2", "a"});
}

TEST_CASE("templates reach the script's name and all arguments but not the program") {
  CHECK(Build(Kind::kScript, "train_$local_rank.py", {"${local_rank}"}, 1) ==
        Argv{"py", "-u", "train_1.py", "1"});
  CHECK(Build(Kind::kProgram, "run_$local_rank", {"x${local_rank}y$$z", "$local_rank"}, 1) ==
        Argv{"run_$local_rank", "x1y$z", "1"});
  CHECK(Build(Kind::kModule, "pkg.m$local_rank", {}, 12) == Argv{"py", "-u", "-m", "pkg.m12"});
}

// Expectations made with CPython 3.11: string.Template(text).safe_substitute(local_rank=7).
TEST_CASE("templates are substituted as Python's safe_substitute does it") {
  struct Case {
    const char* text;
    const char* expected;
  };
  for (const Case& one : std::vector<Case>{{"x${local_rank}y$$z", "x7y$z"},
                                           {"$local_rank", "7"},
                                           {"${local_rank}", "7"},
                                           {"$local_rank1", "$local_rank1"},
                                           {"${local_rank1}", "${local_rank1}"},
                                           {"$Local_rank", "$Local_rank"},
                                           {"${LOCAL_RANK}", "${LOCAL_RANK}"},
                                           {"$", "$"},
                                           {"$$", "$"},
                                           {"$$$", "$$"},
                                           {"$$$$", "$$"},
                                           {"$${local_rank}", "${local_rank}"},
                                           {"$$$local_rank", "$7"},
                                           {"$$local_rank", "$local_rank"},
                                           {"${", "${"},
                                           {"${local_rank", "${local_rank"},
                                           {"${ local_rank}", "${ local_rank}"},
                                           {"${}", "${}"},
                                           {"$ local_rank", "$ local_rank"},
                                           {"$1", "$1"},
                                           {"$-local_rank", "$-local_rank"},
                                           {"a$local_rank-b", "a7-b"},
                                           {"a$local_rank.b", "a7.b"},
                                           {"$local_rank\xc3\xa9", "7\xc3\xa9"},
                                           {"\xc3\xa9$local_rank",
                                            "\xc3\xa9"
                                            "7"},
                                           {"$local_ran\xe2\x84\xaa", "$local_ran\xe2\x84\xaa"},
                                           {"$_local_rank", "$_local_rank"},
                                           {"$local_rank$local_rank", "77"},
                                           {"${local_rank}${local_rank}", "77"},
                                           {"$foo$local_rank", "$foo7"},
                                           {"${foo}${local_rank}", "${foo}7"},
                                           {"${local_rank}}", "7}"},
                                           {"{$local_rank}", "{7}"},
                                           {"$local_rank_x", "$local_rank_x"},
                                           {"${{local_rank}}", "${{local_rank}}"},
                                           {"${$local_rank}", "${7}"},
                                           {"$\n", "$\n"},
                                           {"a\n$local_rank\nb", "a\n7\nb"},
                                           {"", ""},
                                           {"plain", "plain"}}) {
    CAPTURE(one.text);
    CHECK(SubstituteLocalRank(one.text, 7) == one.expected);
  }
  CHECK(SubstituteLocalRank("$local_rank", 4294967295U) == "4294967295");
}

}  // namespace
}  // namespace ddprun
