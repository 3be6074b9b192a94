#include "launcher/script/local_rank_argument.h"

#include "launcher/script/rejected_local_rank.h"
#include "tests/support/catch.h"

namespace ddprun {
namespace {

using Mode = LocalRankPolicy::Mode;
using Answer = std::optional<std::string>;

LocalRankScan Declaring(std::initializer_list<const char*> spellings) {
  LocalRankScan scan;
  for (const char* spelling : spellings) {
    scan.declarations.push_back({spelling, LocalRankSource::kArgparse, 12, false});
  }
  return scan;
}

Answer Decide(LocalRankPolicy policy, LocalRankProgram program, LocalRankScan scan = {},
              std::optional<int> torch = std::nullopt) {
  return DecideLocalRankArgument({std::move(policy), program, std::move(scan), torch});
}

const Answer kNone;
const Answer kUnderscore = "--local_rank=${local_rank}";
const Answer kDash = "--local-rank=${local_rank}";
const LocalRankPolicy kAuto;

TEST_CASE("ddprun passes the local rank only as the script declares it") {
  const auto program = LocalRankProgram::kDdprun;
  CHECK(Decide(kAuto, program) == kNone);
  CHECK(Decide(kAuto, program, {}, 1) == kNone);
  CHECK(Decide(kAuto, program, Declaring({"--local_rank"}), 2) == kUnderscore);
  CHECK(Decide(kAuto, program, Declaring({"--local-rank"}), 1) == kDash);
  CHECK(Decide(kAuto, program, Declaring({"--local-rank", "--local_rank"}), 1) == kUnderscore);
  CHECK(Decide(kAuto, program, Declaring({"--local-rank", "--local_rank"}), 2) == kDash);
  CHECK(Decide(kAuto, program, Declaring({"--local_rank", "--local-rank"})) == kDash);
}

TEST_CASE("torchrun and --use-env pass nothing by themselves") {
  for (const auto program : {LocalRankProgram::kTorchrun, LocalRankProgram::kLaunchUseEnv}) {
    CHECK(Decide(kAuto, program, Declaring({"--local_rank"}), 1) == kNone);
    CHECK(Decide({Mode::kAlways, ""}, program, Declaring({"--local_rank"})) == kUnderscore);
  }
}

TEST_CASE("launch always passes it, in the spelling of the script or of torch's version") {
  const auto program = LocalRankProgram::kLaunch;
  CHECK(Decide(kAuto, program) == kDash);
  CHECK(Decide(kAuto, program, {}, 2) == kDash);
  CHECK(Decide(kAuto, program, {}, 3) == kDash);
  CHECK(Decide(kAuto, program, {}, 1) == kUnderscore);
  CHECK(Decide(kAuto, program, Declaring({"--local_rank"}), 2) == kUnderscore);
  CHECK(Decide(kAuto, program, Declaring({"--local-rank"}), 1) == kDash);
}

TEST_CASE("an order beats everything that was found") {
  for (const auto program : {LocalRankProgram::kDdprun, LocalRankProgram::kLaunch}) {
    CHECK(Decide({Mode::kNever, ""}, program, Declaring({"--local_rank"})) == kNone);
    CHECK(Decide({Mode::kAlways, "--local_rank"}, program, Declaring({"--local-rank"}), 2) ==
          kUnderscore);
    CHECK(Decide({Mode::kAlways, ""}, program, {}, 1) == kUnderscore);
    CHECK(Decide({Mode::kAlways, ""}, program) == kDash);
  }
}

LaunchedCommand Launched(std::vector<std::string> words, std::size_t script_at,
                         LocalRankProgram program, Answer added, LocalRankScan scan = {}) {
  return {std::move(words), script_at, program, std::move(added), std::move(scan)};
}

const LaunchedCommand kLaunchCommand =
    Launched({"ddprun-launch", "--nproc-per-node=2", "train.py", "--lr", "0.1"}, 2,
             LocalRankProgram::kLaunch, kDash);

TEST_CASE("every parser's refusal is recognised") {
  for (const char* text :
       {"usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --local-rank=0",
        "train.py: error: unrecognized arguments: --foo --local_rank=1 x\n",
        "Usage: train.py [OPTIONS]\n\nError: No such option: --local-rank Did you mean --rank?",
        "Error: no such option: --local_rank",
        "\xe2\x94\x82 No such option: --local-rank \xe2\x94\x82",
        "FATAL Flags parsing error:\n  Unknown command line flag 'local_rank'. Did you mean: rank "
        "?",
        "ERROR: Could not consume arg: --local_rank=0",
        "ValueError: Some specified arguments are not used by the HfArgumentParser: "
        "['--local_rank=0']",
        "getopt.GetoptError: option --local_rank not recognized",
        "\xe2\x94\x82 Unrecognized options: --local-rank=0 \xe2\x94\x82",
        "error: ambiguous option: --local_rank=0 could match --local_rank_a, --local_rank_b",
        "error: argument --local_rank: ignored explicit argument '0'"}) {
    CAPTURE(text);
    CHECK(ExplainRejectedLocalRank(text, kLaunchCommand).has_value());
  }
}

TEST_CASE("other failures are not blamed on the local rank") {
  for (const char* text :
       {"", "error: unrecognized arguments: --foo", "KeyError: 'LOCAL_RANK'",
        "RuntimeError: local_rank 3 is too large", "unrecognized arguments: --local_rank_id=3",
        "unrecognized arguments: --locality\nlocal_rank=0", "No such option: --rank",
        "\xff\xfe local \x00 rank"}) {
    CAPTURE(text);
    CHECK_FALSE(ExplainRejectedLocalRank(text, kLaunchCommand).has_value());
  }
}

TEST_CASE("the sentence holds the exact command that works") {
  const std::string refused = "error: unrecognized arguments: --local-rank=0";
  CHECK(*ExplainRejectedLocalRank(refused, kLaunchCommand) ==
        "train.py does not know --local-rank, which the launcher added; LOCAL_RANK is in the "
        "environment, run: ddprun-launch --use-env --nproc-per-node=2 train.py --lr 0.1");
  LaunchedCommand other = kLaunchCommand;
  other.scan = Declaring({"--local_rank"});
  CHECK(*ExplainRejectedLocalRank(refused, other) ==
        "train.py does not know --local-rank, which the launcher added, but train.py:12 declares "
        "--local_rank (argparse); run: ddprun-launch --local-rank-arg=always:--local_rank "
        "--nproc-per-node=2 train.py --lr 0.1");
  const auto ordered =
      Launched({"ddprun", "--local_rank_arg", "always", "t.py", "--local-rank-arg=x"}, 3,
               LocalRankProgram::kDdprun, kDash);
  CHECK(ExplainRejectedLocalRank(refused, ordered)
            ->find("run: ddprun --local-rank-arg=never t.py --local-rank-arg=x") !=
        std::string::npos);
  const auto typed =
      Launched({"ddprun", "t.py", "--local_rank", "0", "a b"}, 1, LocalRankProgram::kDdprun, kNone);
  CHECK(*ExplainRejectedLocalRank("error: unrecognized arguments: --local_rank", typed) ==
        "t.py does not know --local_rank, which is among its own arguments; leave it out, "
        "LOCAL_RANK is in the environment: ddprun t.py 'a b'");
}

TEST_CASE("a script that demands the argument is given it") {
  const auto command = Launched({"ddprun", "t.py"}, 1, LocalRankProgram::kDdprun, kNone);
  CHECK(*ExplainRejectedLocalRank("error: the following arguments are required: --local_rank",
                                  command) ==
        "t.py demands --local_rank, which it was not given; run: ddprun "
        "--local-rank-arg=always:--local_rank t.py");
}

TEST_CASE("words are quoted for a shell only where they must be") {
  CHECK(ShellJoin({"a", "--x=1", "", "it's", "$x"}) == "a --x=1 '' 'it'\\''s' '$x'");
  CHECK(ShellJoin({}).empty());
}

}  // namespace
}  // namespace ddprun
