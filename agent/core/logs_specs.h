#pragma once

// LogsSpecs: what the options say about the workers' output, and LogsDest: where each stream of
// each worker of one attempt goes. Pure: names and decisions only; LogsDirectory makes the folders,
// LogPump and the spawner open the files. The words are torchelastic's (LogsSpecs.reify() gives a
// LogsDest), the rules those of torch 2.15.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/core/worker_spec.h"
#include "rendezvous/base/error.h"

namespace ddprun {

enum class StdStream : std::uint8_t { kOut = 0, kErr = 1 };

// The value of --redirects or --tee. Bit 1 is stdout, bit 2 stderr.
struct StreamSelection {
  static constexpr std::uint32_t kOutBit = 1;
  static constexpr std::uint32_t kErrBit = 2;

  std::uint32_t everywhere = 0;                          // "3": for every local rank.
  std::map<std::uint32_t, std::uint32_t> by_local_rank;  // "0:1,1:2": these ranks, others nothing.

  std::uint32_t Of(std::uint32_t local_rank) const;  // Its bits.
  bool Includes(StdStream stream, std::uint32_t local_rank) const;
  bool empty() const;

  friend bool operator==(const StreamSelection&, const StreamSelection&) = default;
};

struct LogsSpecs {
  std::string log_dir;  // --log-dir; empty: a temporary folder; "/dev/null": no files at all.
  StreamSelection redirects;
  StreamSelection tee;
  std::set<long long>
      local_ranks_filter;  // Empty: every rank prints. Others match what they match.
  std::vector<std::string> duplicate_stdout_filters;
  std::vector<std::string> duplicate_stderr_filters;
  std::string line_prefix_template;  // Empty: "[<role><local rank>]:".

  // --log-dir=/dev/null (torch 2.3 and newer): no folder, no error file, output straight to the
  // console whatever tee, redirects and the rank filter say.
  bool discards_files() const { return log_dir == "/dev/null"; }

  // A rank outside the filter shows nothing on the console.
  bool Prints(std::uint32_t local_rank) const;
};

// What cannot work, before anything is started: duplicate filters without a log folder, and a run
// id that cannot be part of a folder's name.
Expected<void> CheckLogsSpecs(const LogsSpecs& specs, std::string_view run_id);

// "<run id>_<suffix>": the folder of one launch below the base folder.
std::string RunDirectoryName(std::string_view run_id, std::string_view suffix);

// "attempt_<restart count>", for a further round with the same count "attempt_<count>.<repeat>".
std::string AttemptDirectoryName(std::uint64_t restart_count, std::uint64_t repeat);

// One worker, as far as its output is concerned.
struct LogsRank {
  std::uint32_t local_rank = 0;
  std::uint32_t global_rank = 0;
};

struct LogsContext {
  std::string attempt_directory;  // Absolute; unused when the files are discarded.
  std::string role;
  std::string hostname;  // The short name, as set with sethostname(2).
  std::vector<LogsRank> ranks;
};

struct WorkerLogs {
  StreamPlan out;
  StreamPlan err;
  std::string error_file;  // TORCHELASTIC_ERROR_FILE; empty when files are discarded.
};

struct LogsDest {
  std::vector<WorkerLogs> workers;  // In the order of LogsContext::ranks.
  // The files of --duplicate-*-filters: empty when the option was not given. They are created even
  // if no stream is tee'd.
  std::string filtered_stdout;
  std::string filtered_stderr;
};

LogsDest ReifyLogs(const LogsSpecs& specs, const LogsContext& context);

// The values that a prefix template can name.
struct PrefixValues {
  std::string role_name;
  std::uint32_t rank = 0;
  std::uint32_t local_rank = 0;
  std::string hostname;
};

// As Python's string.Template.safe_substitute: ${name} and $name, "$$" is "$", and what is unknown
// or malformed stays as it is. Names: role_name, rank, local_rank, hostname (torch 2.15) and host
// (ours, the same). An empty template gives the default prefix.
std::string ExpandLinePrefix(std::string_view text, const PrefixValues& values);

}  // namespace ddprun
