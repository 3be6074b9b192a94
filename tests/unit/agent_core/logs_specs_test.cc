#include "agent/core/logs_specs.h"

#include "tests/support/catch.h"

namespace ddprun {
namespace {

using Route = StreamPlan::Route;

LogsContext TwoRanks() {
  return {"/logs/run/attempt_0", "default", "node7", {{0, 4}, {1, 5}}};
}

LogsSpecs Specs(StreamSelection redirects, StreamSelection tee) {
  LogsSpecs specs;
  specs.log_dir = "/logs";
  specs.redirects = std::move(redirects);
  specs.tee = std::move(tee);
  return specs;
}

TEST_CASE("a selection is one value for all or a value for each named local rank") {
  const StreamSelection all{3, {}};
  CHECK(all.Includes(StdStream::kOut, 17));
  CHECK(all.Includes(StdStream::kErr, 17));
  const StreamSelection some{0, {{0, 1}, {12, 2}}};
  CHECK(some.Includes(StdStream::kOut, 0));
  CHECK_FALSE(some.Includes(StdStream::kErr, 0));
  CHECK(some.Includes(StdStream::kErr, 12));
  CHECK_FALSE(some.Includes(StdStream::kOut, 12));
  CHECK_FALSE(some.Includes(StdStream::kOut, 1));
  CHECK_FALSE(some.empty());
  CHECK(StreamSelection{}.empty());
  CHECK(StreamSelection{0, {{0, 0}}}.empty());
  CHECK_FALSE(all.empty());
}

TEST_CASE("without options the streams are inherited and the error file is still named") {
  const LogsDest dest = ReifyLogs(Specs({}, {}), TwoRanks());
  REQUIRE(dest.workers.size() == 2);
  CHECK(dest.workers[1].out.route == Route::kInherit);
  CHECK(dest.workers[1].err.route == Route::kInherit);
  CHECK(dest.workers[1].out.file.empty());
  CHECK(dest.workers[0].error_file == "/logs/run/attempt_0/0/error.json");
  CHECK(dest.workers[1].error_file == "/logs/run/attempt_0/1/error.json");
  CHECK(dest.filtered_stdout.empty());
  CHECK(dest.filtered_stderr.empty());
}

TEST_CASE("redirected streams go straight to their files") {
  const LogsDest dest = ReifyLogs(Specs({3, {}}, {}), TwoRanks());
  CHECK(dest.workers[0].out.route == Route::kFile);
  CHECK(dest.workers[0].out.file == "/logs/run/attempt_0/0/stdout.log");
  CHECK(dest.workers[1].err.route == Route::kFile);
  CHECK(dest.workers[1].err.file == "/logs/run/attempt_0/1/stderr.log");
  CHECK(dest.workers[0].out.prefix.empty());
}

TEST_CASE("tee of one rank and redirect of another (conformance row 69)") {
  const LogsDest dest = ReifyLogs(Specs({0, {{1, 3}}}, {0, {{0, 1}}}), TwoRanks());
  CHECK(dest.workers[0].out.route == Route::kTee);
  CHECK(dest.workers[0].out.file == "/logs/run/attempt_0/0/stdout.log");
  CHECK(dest.workers[0].out.prefix == "[default0]:");
  CHECK(dest.workers[0].err.route == Route::kInherit);
  CHECK(dest.workers[1].out.route == Route::kFile);
  CHECK(dest.workers[1].err.route == Route::kFile);
}

TEST_CASE("tee implies redirect and wins over it") {
  const LogsDest dest = ReifyLogs(Specs({3, {}}, {1, {}}), TwoRanks());
  CHECK(dest.workers[0].out.route == Route::kTee);
  CHECK(dest.workers[0].err.route == Route::kFile);
}

TEST_CASE("local ranks above nine have files and prefixes like the others") {
  LogsContext context = TwoRanks();
  context.ranks = {{12, 140}};
  const LogsDest dest = ReifyLogs(Specs({}, {3, {}}), context);
  CHECK(dest.workers[0].err.file == "/logs/run/attempt_0/12/stderr.log");
  CHECK(dest.workers[0].err.prefix == "[default12]:");
}

TEST_CASE("ranks outside the filter show nothing but keep their files") {
  LogsSpecs specs = Specs({0, {{1, 2}}}, {0, {{0, 1}, {1, 1}}});
  specs.local_ranks_filter = {0, 99, -1};
  const LogsDest dest = ReifyLogs(specs, TwoRanks());
  CHECK(dest.workers[0].out.route == Route::kTee);
  CHECK(dest.workers[0].err.route == Route::kInherit);
  CHECK(dest.workers[1].out.route == Route::kFile);
  CHECK(dest.workers[1].out.prefix.empty());
  CHECK(dest.workers[1].err.route == Route::kFile);

  specs = Specs({}, {});
  specs.local_ranks_filter = {0};
  const LogsDest quiet = ReifyLogs(specs, TwoRanks());
  CHECK(quiet.workers[0].out.route == Route::kInherit);
  CHECK(quiet.workers[1].out.route == Route::kNull);
  CHECK(quiet.workers[1].err.route == Route::kNull);
  CHECK_FALSE(quiet.workers[1].error_file.empty());
}

TEST_CASE("a filter that names no rank of this node silences all of them") {
  LogsSpecs specs = Specs({}, {});
  specs.local_ranks_filter = {-3};
  CHECK(ReifyLogs(specs, TwoRanks()).workers[0].out.route == Route::kNull);
}

TEST_CASE("with /dev/null as log folder everything goes to the console") {
  LogsSpecs specs = Specs({3, {}}, {1, {}});
  specs.log_dir = "/dev/null";
  specs.local_ranks_filter = {0};
  const LogsDest dest = ReifyLogs(specs, TwoRanks());
  for (const WorkerLogs& worker : dest.workers) {
    CHECK(worker.out.route == Route::kInherit);
    CHECK(worker.err.route == Route::kInherit);
    CHECK(worker.out.file.empty());
    CHECK(worker.error_file.empty());
  }
}

TEST_CASE("filter files are named when a filter is given, also without tee") {
  LogsSpecs specs = Specs({}, {});
  specs.duplicate_stderr_filters = {"loss"};
  const LogsDest dest = ReifyLogs(specs, TwoRanks());
  CHECK(dest.filtered_stdout.empty());
  CHECK(dest.filtered_stderr == "/logs/run/attempt_0/filtered_stderr.log");
}

TEST_CASE("what cannot work is refused with the option's name") {
  LogsSpecs specs = Specs({}, {});
  CHECK(CheckLogsSpecs(specs, "none").has_value());
  const Expected<void> slash = CheckLogsSpecs(specs, "a/b");
  REQUIRE_FALSE(slash.has_value());
  CHECK(slash.error().message.find("--rdzv-id 'a/b'") != std::string::npos);

  specs.log_dir = "/dev/null";
  CHECK(CheckLogsSpecs(specs, "a/b").has_value());
  specs.duplicate_stderr_filters = {"x"};
  const Expected<void> filters = CheckLogsSpecs(specs, "none");
  REQUIRE_FALSE(filters.has_value());
  CHECK(filters.error().message.find("--duplicate-stderr-filters") != std::string::npos);
  specs.duplicate_stdout_filters = {"x"};
  CHECK(CheckLogsSpecs(specs, "none").error().message.find("--duplicate-stdout-filters") == 0);
}

TEST_CASE("the folders' names") {
  CHECK(RunDirectoryName("none", "a_b1c2d3") == "none_a_b1c2d3");
  CHECK(AttemptDirectoryName(0, 0) == "attempt_0");
  CHECK(AttemptDirectoryName(12, 3) == "attempt_12.3");
}

TEST_CASE("prefix templates are substituted as Python's safe_substitute does") {
  const PrefixValues values{"trainer", 140, 12, "node7"};
  const auto expand = [&values](std::string_view text) { return ExpandLinePrefix(text, values); };
  CHECK(expand("") == "[trainer12]:");
  CHECK(expand("[${role_name}${rank}]>") == "[trainer140]>");
  CHECK(expand("${hostname}:${rank} ") == "node7:140 ");
  CHECK(expand("${host}/$local_rank|") == "node7/12|");
  CHECK(expand("$rank.") == "140.");
  CHECK(expand("$ranks") == "$ranks");
  CHECK(expand("${rank") == "${rank");
  CHECK(expand("${ rank}") == "${ rank}");
  CHECK(expand("${}") == "${}");
  CHECK(expand("${Rank}") == "${Rank}");
  CHECK(expand("${unknown}:$also_unknown") == "${unknown}:$also_unknown");
  CHECK(expand("$$rank $$") == "$rank $");
  CHECK(expand("$$$rank") == "$140");
  CHECK(expand("100% $") == "100% $");
  CHECK(expand("$1 $-") == "$1 $-");
  CHECK(expand("plain") == "plain");
}

TEST_CASE("the template makes the whole prefix") {
  LogsSpecs specs = Specs({}, {1, {}});
  specs.line_prefix_template = "[${role_name}-${rank}] ";
  CHECK(ReifyLogs(specs, TwoRanks()).workers[1].out.prefix == "[default-5] ");
}

}  // namespace
}  // namespace ddprun
