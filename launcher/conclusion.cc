#include "launcher/conclusion.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/core/failure_hints.h"
#include "agent/core/root_cause.h"
#include "agent/process/log_tail.h"
#include "agent/process/memory_facts.h"
#include "launcher/report/error_record.h"
#include "launcher/report/failure_report.h"
#include "launcher/report/stop_report.h"
#include "rendezvous/base/hostname.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

std::string ProgramOf(const LaunchPlan& plan) {
  return plan.agent.blueprint.workers.front().argv.front();
}

// Torch names the script when the program is the interpreter that the launcher chose itself.
bool InterpreterIsOurs(const LaunchPlan& plan) {
  return plan.interpreter && plan.interpreter->source != InterpreterSource::kPythonExec;
}

StderrOfRank StderrOf(const WorkerSpec& spec) {
  StderrOfRank result;
  result.path = spec.err.file;
  switch (spec.err.route) {
    case StreamPlan::Route::kInherit:
      result.route = StderrOfRank::Route::kInherited;
      return result;
    case StreamPlan::Route::kNull:
      result.route = StderrOfRank::Route::kDiscarded;
      return result;
    case StreamPlan::Route::kFile:
    case StreamPlan::Route::kTee:
      break;
  }
  result.route = StderrOfRank::Route::kFile;
  if (const auto lines = ReadLogTail(spec.err.file, {})) {
    result.tail = Join(*lines, "\n");
  }
  return result;
}

// What the launcher's own error file gets; each problem is a warning, never the job's outcome.
void Take(Expected<RecordOutcome> outcome, std::vector<std::string>& warnings) {
  if (!outcome) {
    warnings.push_back(
        fmt::format("the launcher's own error file: {}, ignoring", outcome.error().message));
    return;
  }
  warnings.insert(warnings.end(), outcome->warnings.begin(), outcome->warnings.end());
}

// torch.distributed.launch writes no record of its own, and so ddprun-launch writes none.
bool Records(const LaunchConfig& config) {
  return config.program != Program::kLaunch;
}

FailureEvidence EvidenceFor(const LaunchFacts& facts, const NodeAgentResult& result,
                            const ProcessFailure& root, const StderrOfRank& root_stderr,
                            MemoryFacts after) {
  FailureEvidence evidence;
  evidence.failure = root;
  evidence.stderr_tail = root_stderr.tail;
  evidence.before = facts.before;
  evidence.after = std::move(after);
  evidence.ports.push_back(
      {result.round.master_port,
       fmt::format("this job's store (MASTER_PORT, ddprun pid {})", ::getpid())});
  evidence.local_rank_advice =
      ExplainRejectedLocalRank(root_stderr.tail, facts.plan.command).value_or("");
  return evidence;
}

Conclusion ConcludeFailure(const LaunchFacts& facts, const NodeAgentResult& result) {
  Conclusion conclusion;
  conclusion.exit_code = 1;
  MemoryFacts after = ReadMemoryFacts();
  FailureReport report;
  report.root = FindRootCause(result.failures, OomKillsBetween(facts.before, after) > 0);
  const ProcessFailure& root = result.failures[report.root.index];
  const WorkerSpec& spec = result.specs[root.local_rank];
  report.name = EntrypointName(spec.argv, InterpreterIsOurs(facts.plan));
  report.host = Hostname();
  report.failures = result.failures;
  report.root_stderr = StderrOf(spec);
  report.hints = HintsFor(EvidenceFor(facts, result, root, report.root_stderr, std::move(after)));
  report.log_folder = result.log_directory;
  for (const std::string& leftover : result.leftovers) {
    report.warnings.push_back("could not be ended: " + leftover);
  }
  conclusion.root_line = FormatAttemptLine(root, ProgramOf(facts.plan));
  conclusion.text = FormatFailureReport(report);
  if (Records(facts.config)) {
    Take(RecordWorkerFailure(facts.config.variables.error_file.value_or(""), root),
         conclusion.warnings);
  }
  return conclusion;
}

Conclusion ConcludeStop(const LaunchFacts& facts, const NodeAgentResult& result) {
  Conclusion conclusion;
  conclusion.exit_code = 1;
  StopReport report;
  report.signal = result.run.signal;
  report.sender_pid = result.signal.sender;
  report.sender_name = result.signal.sender_name;
  report.ran = result.signal_after;
  report.grace = facts.plan.agent.shutdown_timeout;
  for (const WorkerOutcome& outcome : result.run.outcomes) {
    report.workers.push_back({result.specs[outcome.local_rank].global_rank, outcome.status,
                              std::max(Duration::zero(), result.ended_after[outcome.local_rank]),
                              outcome.killed_by_agent});
  }
  conclusion.text = FormatStopReport(report);
  const std::vector<int>& handled = facts.config.handled_signals;
  const bool is_handled =
      std::find(handled.begin(), handled.end(), result.run.signal) != handled.end();
  if (result.run.before_start || !is_handled) {
    conclusion.die_by_signal = result.run.signal;
  }
  if (result.run.before_start) {
    conclusion.text.clear();
  } else {
    conclusion.warnings = RecordLauncherError(facts.config, std::string(Trim(conclusion.text)));
  }
  return conclusion;
}

}  // namespace

std::vector<std::string> RecordLauncherError(const LaunchConfig& config,
                                             const std::string& message) {
  std::vector<std::string> warnings;
  const std::string path = config.variables.error_file.value_or("");
  if (Records(config) && !path.empty()) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    Take(RecordLauncherFailure(
             path, {message, "", std::chrono::duration_cast<std::chrono::seconds>(now).count()}),
         warnings);
  }
  return warnings;
}

std::string DescribeFailedAttempt(const LaunchPlan& plan,
                                  const std::vector<ProcessFailure>& failures) {
  const RootCause root = FindRootCause(failures, false);
  return FormatAttemptLine(failures[root.index], ProgramOf(plan));
}

Conclusion Conclude(const LaunchFacts& facts, const NodeAgentResult& result) {
  switch (result.run.state) {
    case WorkerState::kSucceeded:
      return {};
    case WorkerState::kStopped:
      return ConcludeStop(facts, result);
    default:
      break;
  }
  if (!result.failures.empty() && result.run.reason.empty()) {
    return ConcludeFailure(facts, result);
  }
  Conclusion conclusion;
  conclusion.exit_code = 1;
  conclusion.text = fmt::format("ddprun: error: {}\n", result.run.reason);
  for (const std::string& leftover : result.leftovers) {
    conclusion.text += fmt::format("ddprun: could not be ended: {}\n", leftover);
  }
  conclusion.warnings = RecordLauncherError(facts.config, result.run.reason);
  return conclusion;
}

}  // namespace ddprun
