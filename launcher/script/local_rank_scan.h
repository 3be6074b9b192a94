#pragma once

// What a training script's text says about a local-rank argument (DESIGN section 7). Scripts of the
// time before LOCAL_RANK take their rank as `--local_rank=N` or `--local-rank=N`; giving it to one
// that does not declare it makes its argument parser fail. Found by reading the script's tokens.
// Pure; any text is accepted; linear in the input, with the limits of python_tokens.h.
//
// Declarations are:
// - argparse, optparse and their relatives: `add_argument("--local_rank")` of any receiver, helpers
//   named alike (`add_arg`, `add_option`), several spellings in one call, `*[...]`;
// - click and typer: `option("--local_rank")`, `typer.Option(..., "--local_rank")`, and parameters
//   `local_rank` of a typer command, which typer turns into `--local-rank`;
// - absl, gflags, TensorFlow: `DEFINE_integer("local_rank", ...)`;
// - fields and parameters `local_rank` of a dataclass or function in this file that is given to
//   HfArgumentParser, simple_parsing, tyro, jsonargparse, Tap or fire;
// - getopt lists, docopt texts, and code that looks for the argument in sys.argv.
// Not declarations: an imported dataclass such as transformers' TrainingArguments (it reads
// LOCAL_RANK itself), a positional "local_rank", an argument of another file, a name that cannot be
// read from the text.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

inline constexpr std::string_view kLocalRankUnderscore = "--local_rank";
inline constexpr std::string_view kLocalRankDash = "--local-rank";

enum class LocalRankSource {
  kArgparse,   // add_argument, add_option and helpers.
  kClick,      // click and typer.
  kFlags,      // DEFINE_*.
  kSignature,  // A field or parameter that a framework turns into an option.
  kGetopt,
  kDocopt,
  kArgv,  // A look into sys.argv.
};

struct LocalRankDeclaration {
  std::string spelling;  // kLocalRankUnderscore or kLocalRankDash.
  LocalRankSource source = LocalRankSource::kArgparse;
  std::uint32_t line = 0;  // From 1.
  bool subcommand =
      false;  // Of a subcommand only: it cannot be given before the subcommand's name.
};

struct LocalRankScan {
  static constexpr std::size_t kMaxDeclarations = 64;

  std::vector<LocalRankDeclaration> declarations;  // By line; no two alike.
  bool complete = true;                            // False: only the beginning was read.

  // The first declaration of the spelling that may stand directly behind the script's name.
  const LocalRankDeclaration* Find(std::string_view spelling) const;
  bool Declares(std::string_view spelling) const { return Find(spelling) != nullptr; }
  bool declared() const { return Declares(kLocalRankUnderscore) || Declares(kLocalRankDash); }
};

LocalRankScan ScanForLocalRank(std::string_view python_source);

// "argparse", "click", ... for messages.
std::string_view ToString(LocalRankSource source);

// "train.py:12 declares --local_rank (argparse)".
std::string Describe(std::string_view file, const LocalRankDeclaration& declaration);

}  // namespace ddprun
