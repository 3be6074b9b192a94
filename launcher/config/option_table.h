#pragma once

// The option table: the one description of every option. The parser, --help, the man page, the
// shell completions and docs/options.md are all made from it. Names, defaults and choices of
// torch's own options are those of torch 2.15.0 (torch/distributed/run.py, launch.py).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/config/launch_config.h"

namespace ddprun {

// One per row of the table, in its order.
enum class OptionId : std::uint8_t {
  kNnodes,
  kNprocPerNode,
  kRole,
  kRdzvBackend,
  kRdzvEndpoint,
  kRdzvId,
  kRdzvConf,
  kStandalone,
  kNodeRank,
  kMasterAddr,
  kMasterPort,
  kLocalAddr,
  kStoreConf,
  kMaxRestarts,
  kMonitorInterval,
  kShutdownTimeout,
  kSignalsToHandle,
  kModule,
  kNoPython,
  kRunPath,
  kUseEnv,
  kStartMethod,
  kLocalRankArg,
  kPython,
  kOmpNumThreads,
  kStdin,
  kLogDir,
  kRedirects,
  kTee,
  kLogLinePrefixTemplate,
  kLocalRanksFilter,
  kDuplicateStdoutFilters,
  kDuplicateStderrFilters,
  kEventLogHandler,
  kLogsSpecs,
  kGpus,
  kGpuBinding,
  kGpuIdsFormat,
  kVirtualLocalRank,
  kNumaBinding,
  kConfig,
  kPrintConfig,
  kDryRun,
  kPrintCompletion,
  kVersion,
  kHelp,
  kEnd,  // Not an option: the number of rows.
};

enum class OptionKind : std::uint8_t {
  kFlag,     // Takes no value.
  kText,     // Any text; its meaning is checked after parsing (exit code 1).
  kInteger,  // Python's int(text); anything else is a usage error (exit code 2).
  kFloat,    // Python's float(text); likewise.
  kChoice,   // One of `choices`; anything else on the command line is a usage error.
  kList,     // Text whose commas separate items; the config file may give an array.
};

enum class OptionGroup : std::uint8_t {
  kWorkers,
  kRendezvous,
  kSupervision,
  kScript,
  kOutput,
  kDevices,
  kGeneral,
  kEnd,
};

// Which variable gives an option's default.
enum class OptionVariable : std::uint8_t { kNone, kPet, kDdprun };

struct OptionSpec {
  OptionId id;
  OptionGroup group;
  OptionKind kind;
  OptionVariable variable;
  bool torch;                     // torch's own option: wins over ours where a prefix fits both.
  char short_name;                // 'r' for -r; 0 without.
  std::string_view name;          // With dashes, without the leading ones.
  std::string_view metavar;       // Empty for flags.
  std::string_view default_text;  // As `ddprun`; empty: unset.
  std::string_view choices;       // "a|b|c"; for kChoice, and as hints for completion elsewhere.
  std::string_view help;          // One or two sentences.
};

std::span<const OptionSpec> OptionTable();
const OptionSpec& SpecOf(OptionId id);
std::string_view TitleOf(OptionGroup group);

// The options that exist under a program's name: --use-env belongs to ddprun-launch alone.
bool ExistsFor(const OptionSpec& spec, Program program);

// The built-in default under a program's name (DESIGN sections 6, 7).
std::string_view DefaultFor(const OptionSpec& spec, Program program);

// "--nproc-per-node", "--nproc_per_node": both long spellings, or the one if there is no dash in
// it.
std::vector<std::string> LongSpellings(const OptionSpec& spec);

// torch's destination name: "nproc_per_node".
std::string DestinationOf(const OptionSpec& spec);

// "PET_NPROC_PER_NODE", "DDPRUN_GPUS"; empty for options without one.
std::string VariableOf(const OptionSpec& spec);

std::vector<std::string> ChoicesOf(const OptionSpec& spec);

// The program of an argv[0], and the name it shows in messages.
Program ProgramOf(std::string_view argv0);
std::string_view NameOf(Program program);

}  // namespace ddprun
