#include "launcher/launch.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent/node_agent.h"
#include "agent/process/console_writer.h"
#include "agent/process/memory_facts.h"
#include "launcher/conclusion.h"
#include "launcher/config/command_line.h"
#include "launcher/dry_run.h"
#include "launcher/event_reporter.h"
#include "launcher/launch_plan.h"
#include "rendezvous/base/hostname.h"
#include "rendezvous/base/log.h"
#include "rendezvous/client/local_rendezvous_handler.h"

namespace ddprun {
namespace {

using namespace std::chrono_literals;

// What a reader who stands still may cost at the end, and what a slow one may.
constexpr Duration kFlushPatience = 1s;
constexpr Duration kFlushLimit = 30s;

void Print(std::FILE* stream, const std::string& text) {
  std::fputs(text.c_str(), stream);
}

// LOGLEVEL's names and numbers are Python's (logging, 3.11).
LogLevel LogLevelOf(const std::string& name) {
  if (name == "DEBUG" || name == "NOTSET") {
    return LogLevel::kDebug;
  }
  if (name == "INFO") {
    return LogLevel::kInfo;
  }
  return name == "WARNING" || name == "WARN" ? LogLevel::kWarning : LogLevel::kError;
}

// Torch prints events as log lines of level INFO, which a higher LOGLEVEL silences.
bool EventsEnabled(const Environment& environment) {
  const std::optional<std::string> level = environment.Get("LOGLEVEL");
  return !level || LogLevelOf(*level) <= LogLevel::kInfo;
}

int FailBeforeStart(const LaunchConfig& config, const std::string& message) {
  for (const std::string& warning : RecordLauncherError(config, message)) {
    LogWarning("{}", warning);
  }
  Print(stderr, fmt::format("ddprun: error: {}\n", message));
  return 1;
}

EventContext EventsFor(const LaunchConfig& config, const LaunchPlan& plan) {
  EventContext context;
  context.run_id = config.run_id;
  context.role = config.role;
  context.hostname = Hostname();
  context.rdzv_backend = config.rdzv_backend == RdzvBackend::kStatic ? "static" : "c10d";
  context.program = plan.agent.blueprint.workers.front().argv.front();
  return context;
}

// The console that the log, the events and the report share while workers run.
class Console {
 public:
  Console() {
    SetLogSink([writer = writer_](std::string_view line) {
      writer->WriteOwn(StdStream::kErr, std::string(line));
    });
  }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console() { SetLogSink(nullptr); }

  const std::shared_ptr<ConsoleWriter>& writer() const { return writer_; }
  void Say(std::string text) { writer_->WriteOwn(StdStream::kErr, std::move(text)); }
  void Flush() { writer_->Flush(kFlushPatience, kFlushLimit); }

 private:
  std::shared_ptr<ConsoleWriter> writer_ = std::make_shared<ConsoleWriter>();
};

int Run(const LaunchConfig& config, const LaunchPlan& plan, EventLog log, Console& console,
        const StartSignals& start_signals) {
  EventReporter events(std::move(log), EventsFor(config, plan));
  NodeAgentObserver observer;
  observer.on_rendezvous = [&](const RendezvousInfo& round, Duration took) {
    events.OnRendezvous(round, took);
  };
  observer.on_worker_started = [&](std::uint32_t local_rank, pid_t pid) {
    events.OnWorkerStarted(local_rank, pid);
  };
  observer.on_attempt_failed = [&](const std::vector<ProcessFailure>& failures) {
    LogError("{}", DescribeFailedAttempt(plan, failures));
    events.OnAttemptFailed();
  };
  const LaunchFacts facts{config, plan, ReadMemoryFacts()};
  const std::string shared_memory =
      SmallSharedMemoryWarning(facts.before, static_cast<std::uint32_t>(plan.devices.size()));
  if (!shared_memory.empty()) {
    LogWarning("{}", shared_memory);
  }
  LocalRendezvousHandler rendezvous;
  NodeAgent agent(plan.agent, start_signals, rendezvous, console.writer(), std::move(observer));
  const Expected<NodeAgentResult> result = agent.Run();
  if (!result) {
    events.OnAgentFailed(result.error().message);
    console.Flush();
    return FailBeforeStart(config, result.error().message);
  }
  events.OnEnd(*result);
  const Conclusion conclusion = Conclude(facts, *result);
  if (!conclusion.root_line.empty()) {
    LogError("{}", conclusion.root_line);
  }
  for (const std::string& warning : conclusion.warnings) {
    LogWarning("{}", warning);
  }
  console.Say(conclusion.text);
  console.Flush();
  if (conclusion.die_by_signal != 0) {
    agent.DieBySignal(conclusion.die_by_signal);
  }
  return conclusion.exit_code;
}

}  // namespace

int Launch(const LaunchConfig& config, const std::vector<std::string>& words,
           const Environment& environment, const StartSignals& start_signals) {
  SetLogLevel(LogLevelOf(config.variables.log_level));
  if (config.print_config) {
    Print(stdout, PrintConfig(config));
    return 0;
  }
  Expected<LaunchPlan> plan = MakeLaunchPlan(config, environment, words);
  if (!plan) {
    return FailBeforeStart(config, plan.error().message);
  }
  for (const std::vector<std::string>* list : {&config.warnings, &std::as_const(plan->warnings)}) {
    for (const std::string& warning : *list) {
      LogWarning("{}", warning);
    }
  }
  if (config.dry_run) {
    Print(stdout, FormatDryRun(*plan, environment));
    return 0;
  }
  if (!config.environment_note.empty()) {
    Print(stderr, fmt::format("ddprun: {}\n", config.environment_note));
  }
  for (const std::string& note : plan->notes) {
    Print(stderr, fmt::format("ddprun: {}\n", note));
  }
  Console console;
  Expected<EventLog> events =
      EventLog::Make(config.event_log_handler == EventLogHandler::kConsole ? "console" : "null",
                     EventsEnabled(environment),
                     [&console](std::string_view line) { console.Say(std::string(line)); });
  if (!events) {
    return FailBeforeStart(config, events.error().message);
  }
  return Run(config, *plan, std::move(*events), console, start_signals);
}

}  // namespace ddprun
