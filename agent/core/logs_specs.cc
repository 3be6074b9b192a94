#include "agent/core/logs_specs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace ddprun {
namespace {

struct StreamNames {
  StdStream stream;
  const char* log_file;
};

// Route of one stream of one rank; the table of LogsSpecs.reify() in torch 2.15. Tee implies
// redirect.
StreamPlan::Route RouteOf(const LogsSpecs& specs, StdStream stream, std::uint32_t local_rank) {
  if (specs.discards_files()) {
    return StreamPlan::Route::kInherit;
  }
  const bool tee = specs.tee.Includes(stream, local_rank);
  const bool prints = specs.Prints(local_rank);
  if (tee && prints) {
    return StreamPlan::Route::kTee;
  }
  if (tee || specs.redirects.Includes(stream, local_rank)) {
    return StreamPlan::Route::kFile;
  }
  return prints ? StreamPlan::Route::kInherit : StreamPlan::Route::kNull;
}

StreamPlan PlanOf(const LogsSpecs& specs, const LogsContext& context, LogsRank rank,
                  StreamNames names) {
  StreamPlan plan;
  plan.route = RouteOf(specs, names.stream, rank.local_rank);
  const bool tee = plan.route == StreamPlan::Route::kTee;
  if (tee || plan.route == StreamPlan::Route::kFile) {
    plan.file = fmt::format("{}/{}/{}", context.attempt_directory, rank.local_rank, names.log_file);
  }
  if (tee) {
    plan.prefix = ExpandLinePrefix(specs.line_prefix_template, {context.role, rank.global_rank,
                                                                rank.local_rank, context.hostname});
  }
  return plan;
}

bool IsNameStart(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool IsNameRest(char c) {
  return IsNameStart(c) || (c >= '0' && c <= '9');
}

// A name that stands after '$', with or without braces; empty if there is none.
struct Placeholder {
  std::string_view name;
  std::size_t length = 0;  // Of the whole placeholder without the '$'.
};

Placeholder ReadPlaceholder(std::string_view text) {
  const bool braces = !text.empty() && text.front() == '{';
  const std::size_t start = braces ? 1 : 0;
  if (start >= text.size() || !IsNameStart(text[start])) {
    return {};
  }
  const auto* const end = std::find_if_not(text.begin() + start, text.end(), IsNameRest);
  const auto stop = static_cast<std::size_t>(end - text.begin());
  if (braces && (stop == text.size() || text[stop] != '}')) {
    return {};
  }
  return {text.substr(start, stop - start), braces ? stop + 1 : stop};
}

std::optional<std::string> ValueOf(std::string_view name, const PrefixValues& values) {
  if (name == "role_name") {
    return values.role_name;
  }
  if (name == "rank") {
    return fmt::format("{}", values.rank);
  }
  if (name == "local_rank") {
    return fmt::format("{}", values.local_rank);
  }
  if (name == "hostname" || name == "host") {
    return values.hostname;
  }
  return std::nullopt;
}

// Appends what the '$' in front of `rest` stands for; returns how much of `rest` that used up.
std::size_t AppendSubstitute(std::string_view rest, const PrefixValues& values,
                             std::string& expanded) {
  if (!rest.empty() && rest.front() == '$') {
    expanded += '$';
    return 1;
  }
  const Placeholder placeholder = ReadPlaceholder(rest);
  if (const auto value = ValueOf(placeholder.name, values)) {
    expanded += *value;
    return placeholder.length;
  }
  expanded += '$';
  return 0;
}

}  // namespace

std::uint32_t StreamSelection::Of(std::uint32_t local_rank) const {
  const auto found = by_local_rank.find(local_rank);
  return everywhere | (found == by_local_rank.end() ? 0 : found->second);
}

bool StreamSelection::Includes(StdStream stream, std::uint32_t local_rank) const {
  return (Of(local_rank) & (stream == StdStream::kOut ? kOutBit : kErrBit)) != 0;
}

bool StreamSelection::empty() const {
  return everywhere == 0 && std::all_of(by_local_rank.begin(), by_local_rank.end(),
                                        [](const auto& entry) { return entry.second == 0; });
}

bool LogsSpecs::Prints(std::uint32_t local_rank) const {
  return local_ranks_filter.empty() || local_ranks_filter.count(local_rank) != 0;
}

Expected<void> CheckLogsSpecs(const LogsSpecs& specs, std::string_view run_id) {
  if (specs.discards_files()) {
    if (specs.duplicate_stdout_filters.empty() && specs.duplicate_stderr_filters.empty()) {
      return {};
    }
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--duplicate-{}-filters need a log folder, but --log-dir is "
                            "'/dev/null': give a folder or leave the filters out",
                            specs.duplicate_stdout_filters.empty() ? "stderr" : "stdout"));
  }
  if (run_id.find('/') != std::string_view::npos) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--rdzv-id '{}' contains '/', but it is part of the name of the log "
                            "folder: use an id without '/'",
                            run_id));
  }
  return {};
}

std::string RunDirectoryName(std::string_view run_id, std::string_view suffix) {
  return fmt::format("{}_{}", run_id, suffix);
}

std::string AttemptDirectoryName(std::uint64_t restart_count, std::uint64_t repeat) {
  return repeat == 0 ? fmt::format("attempt_{}", restart_count)
                     : fmt::format("attempt_{}.{}", restart_count, repeat);
}

LogsDest ReifyLogs(const LogsSpecs& specs, const LogsContext& context) {
  LogsDest dest;
  for (const LogsRank& rank : context.ranks) {
    WorkerLogs worker;
    worker.out = PlanOf(specs, context, rank, {StdStream::kOut, "stdout.log"});
    worker.err = PlanOf(specs, context, rank, {StdStream::kErr, "stderr.log"});
    if (!specs.discards_files()) {
      worker.error_file =
          fmt::format("{}/{}/error.json", context.attempt_directory, rank.local_rank);
    }
    dest.workers.push_back(std::move(worker));
  }
  if (!specs.duplicate_stdout_filters.empty()) {
    dest.filtered_stdout = context.attempt_directory + "/filtered_stdout.log";
  }
  if (!specs.duplicate_stderr_filters.empty()) {
    dest.filtered_stderr = context.attempt_directory + "/filtered_stderr.log";
  }
  return dest;
}

std::string ExpandLinePrefix(std::string_view text, const PrefixValues& values) {
  if (text.empty()) {
    return fmt::format("[{}{}]:", values.role_name, values.local_rank);
  }
  std::string expanded;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t dollar = std::min(text.find('$', at), text.size());
    expanded += text.substr(at, dollar - at);
    at = dollar;
    if (at < text.size()) {
      at += 1 + AppendSubstitute(text.substr(at + 1), values, expanded);
    }
  }
  return expanded;
}

}  // namespace ddprun
