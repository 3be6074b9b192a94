#include "launcher/dry_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "launcher/script/rejected_local_rank.h"
#include "rendezvous/core/rank_assignment.h"

namespace ddprun {
namespace {

std::string DescribeStream(const StreamPlan& plan) {
  switch (plan.route) {
    case StreamPlan::Route::kInherit:
      return "the launcher's";
    case StreamPlan::Route::kNull:
      return "/dev/null";
    case StreamPlan::Route::kFile:
      return plan.file;
    case StreamPlan::Route::kTee:
      break;
  }
  return fmt::format("{}, and the console with '{}'", plan.file, plan.prefix);
}

// The round as it would be on one node.
RoundView RoundOf(const LaunchPlan& plan) {
  const auto workers = static_cast<std::uint32_t>(plan.devices.size());
  RoundView round;
  round.ranks = AssignRanks({{plan.agent.role, workers}}).front();
  round.master_addr = plan.agent.store.advertised_address;
  round.master_port = plan.agent.store.server.port;
  return round;
}

std::vector<WorkerLogs> LogsOf(const LaunchPlan& plan) {
  LogsContext context;
  const std::string base =
      plan.agent.logs.log_dir.empty() ? "<temporary folder>" : plan.agent.logs.log_dir;
  context.attempt_directory =
      fmt::format("{}/{}/{}", base, RunDirectoryName(plan.agent.blueprint.run_id, "<random>"),
                  AttemptDirectoryName(0, 0));
  context.role = plan.agent.role;
  context.hostname = "<hostname>";
  for (std::uint32_t local_rank = 0; local_rank < plan.devices.size(); ++local_rank) {
    context.ranks.push_back({local_rank, local_rank});
  }
  return ReifyLogs(plan.agent.logs, context).workers;
}

std::string FormatWorker(const WorkerSpec& spec, const WorkerDevices& devices,
                         const LaunchPlan& plan, const Environment& environment) {
  std::string text =
      fmt::format("worker {} (rank {}):\n  command: {}\n  devices: {}\n", spec.local_rank,
                  spec.global_rank, ShellJoin(spec.argv), devices.text);
  text += fmt::format("  stdin:   {}\n  stdout:  {}\n  stderr:  {}\n  environment:\n",
                      spec.null_stdin ? "/dev/null" : "the launcher's", DescribeStream(spec.out),
                      DescribeStream(spec.err));
  for (const std::string& assignment : spec.environment) {
    const std::size_t equals = assignment.find('=');
    const std::string name = assignment.substr(0, equals);
    const std::string value = assignment.substr(equals + 1);
    const bool any_port = name == "MASTER_PORT" && plan.agent.store.server.port == 0;
    if (environment.Get(name) != value) {
      text += fmt::format("    {}={}\n", name, any_port ? "<a free port>" : ShellJoin({value}));
    }
  }
  return text;
}

}  // namespace

std::string FormatDryRun(const LaunchPlan& plan, const Environment& environment) {
  const std::vector<WorkerSpec> specs =
      BuildWorkerSpecs(plan.agent.blueprint, RoundOf(plan), LogsOf(plan));
  std::string text;
  if (plan.interpreter) {
    text += fmt::format("interpreter: {} ({})\n", plan.interpreter->path,
                        ToString(plan.interpreter->source));
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    text += FormatWorker(specs[i], plan.devices[i], plan, environment);
  }
  return text;
}

}  // namespace ddprun
