#include "launcher/report/failure_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <string_view>

#include "agent/core/clean_text.h"
#include "agent/core/rank_text.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

constexpr std::size_t kMaxWidth = 60;  // Of the rules in torch's block.
constexpr std::size_t kMaxSentence = 300;
constexpr std::size_t kMaxOutputLine = 200;
constexpr std::size_t kMaxFacts = 5;
constexpr std::size_t kMaxFixes = 3;
constexpr std::size_t kMaxConsequences = 6;
constexpr std::size_t kMaxWarnings = 3;
constexpr const char* kNotAvailable = "<N/A>";

// As Python's datetime.fromtimestamp(seconds).isoformat("_").
std::string LocalTime(std::int64_t unix_seconds) {
  const std::time_t seconds = unix_seconds;
  std::tm local{};
  if (::localtime_r(&seconds, &local) == nullptr) {
    return kNotAvailable;
  }
  constexpr int kEpochOfTm = 1900;
  return fmt::format("{:04}-{:02}-{:02}_{:02}:{:02}:{:02}", local.tm_year + kEpochOfTm,
                     local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
}

// The entry already ends in a blank, so two stand in front of the name, as in torch.
std::string SignalSuffix(const ExitStatus& status) {
  return status.kind == ExitStatus::Kind::kSignaled ? fmt::format(" ({})", SignalName(status.value))
                                                    : std::string();
}

// Cuts what no terminal can hold; the beginning names the script's frames, the end the exception.
std::string BoundedMessage(const std::string& message) {
  const auto lines = static_cast<std::size_t>(std::count(message.begin(), message.end(), '\n'));
  if (lines < kMaxMessageLines && message.size() <= kMaxMessageBytes) {
    return message;
  }
  const std::vector<std::string> all = Split(message, '\n');
  constexpr std::size_t kHalf = kMaxMessageLines / 2;
  constexpr std::size_t kLineLimit = 2 * kMaxOutputLine;
  std::string bounded;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == kHalf && all.size() > kMaxMessageLines) {
      bounded += fmt::format("  ... ({} lines left out)\n", all.size() - kMaxMessageLines);
      i = all.size() - kHalf;
    }
    bounded += Shorten(all[i], kLineLimit) + "\n";
  }
  bounded.pop_back();
  return bounded;
}

std::string FormatEntry(std::size_t index, const ProcessFailure& failure, const std::string& host) {
  return fmt::format(
      "[{}]:\n"
      "  time      : {}\n"
      "  host      : {}\n"
      "  rank      : {} (local_rank: {})\n"
      "  exitcode  : {} (pid: {}) {}\n"
      "  error_file: {}\n"
      "  traceback : {}",
      index, LocalTime(failure.timestamp), failure.host.empty() ? host : failure.host,
      failure.global_rank, failure.local_rank, failure.status.exit_code(), failure.pid,
      SignalSuffix(failure.status),
      failure.error_file.empty() ? kNotAvailable : failure.error_file.c_str(),
      BoundedMessage(failure.message));
}

std::size_t WidestLine(std::string_view text) {
  std::size_t widest = 0;
  for (const std::string& line : Split(text, '\n')) {
    widest = std::max(widest, CountCodePoints(line));
  }
  return widest;
}

std::string HostOf(const ProcessFailure& failure, const FailureReport& report) {
  return failure.host.empty() ? report.host : failure.host;
}

// Signals that a fault of the process itself raises; all others somebody sent.
bool IsCrash(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
         signal == SIGABRT || signal == SIGSYS || signal == SIGTRAP;
}

// "killed by SIGKILL, not by ddprun", "ended with exit code 1: RuntimeError: boom".
std::string HowItEnded(const ProcessFailure& failure) {
  std::string how;
  if (failure.stopped_by_agent) {
    how = fmt::format("stopped by ddprun, {}", Describe(failure.status));
  } else if (failure.status.kind == ExitStatus::Kind::kExited) {
    how = fmt::format("ended with {}", Describe(failure.status));
  } else if (IsCrash(failure.status.value)) {
    how = fmt::format("crashed with {}", Describe(failure.status));
  } else {
    how = fmt::format("killed by {}, not by ddprun", SignalName(failure.status.value));
  }
  return failure.headline.empty() ? how : fmt::format("{}: {}", how, failure.headline);
}

std::string CauseLine(const FailureReport& report) {
  const ProcessFailure& root = report.failures[report.root.index];
  return Shorten(fmt::format("Cause: rank {} (local_rank {}, pid {}, {}) {}", root.global_rank,
                             root.local_rank, root.pid, HostOf(root, report), HowItEnded(root)),
                 kMaxSentence);
}

// Why the block's root cause is not simply the first death.
std::string ReasonLine(const FailureReport& report) {
  switch (report.root.reason) {
    case RootCause::Reason::kExceptionOverKill:
      return "its exception and the SIGKILL of its peers came together: some training libraries "
             "kill the other ranks when one raises";
    case RootCause::Reason::kDeathOverLostPeer:
      return "an earlier exception of another rank only says that it lost its peer";
    case RootCause::Reason::kFirst:
      break;
  }
  return {};
}

class Lines {
 public:
  void Add(std::string_view label, const std::vector<std::string>& sentences, std::size_t limit) {
    const std::size_t shown = std::min(sentences.size(), limit);
    for (std::size_t i = 0; i < shown; ++i) {
      text_ +=
          fmt::format("{}{}\n", label, Shorten(ReplaceInvalidUtf8(sentences[i]), kMaxSentence));
    }
    if (shown < sentences.size()) {
      text_ += fmt::format("{}(and {} more)\n", label, sentences.size() - shown);
    }
  }
  void Add(const std::string& line) {
    if (!line.empty()) {
      text_.append(line).append("\n");
    }
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

struct Outcome {
  std::string how;
  std::vector<std::uint32_t> ranks;
};

std::vector<Outcome> OutcomesOfOthers(const FailureReport& report) {
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < report.failures.size(); ++i) {
    const ProcessFailure& failure = report.failures[i];
    if (i == report.root.index || failure.status.success()) {
      continue;
    }
    const std::string how = HowItEnded(failure);
    auto found = std::find_if(outcomes.begin(), outcomes.end(),
                              [&how](const Outcome& outcome) { return outcome.how == how; });
    if (found == outcomes.end()) {
      found = outcomes.insert(outcomes.end(), Outcome{how, {}});
    }
    found->ranks.push_back(failure.global_rank);
  }
  return outcomes;
}

std::vector<std::string> Consequences(const FailureReport& report) {
  std::vector<std::string> sentences;
  for (const Outcome& outcome : OutcomesOfOthers(report)) {
    sentences.push_back(fmt::format("{} {}", DescribeRanks(outcome.ranks), outcome.how));
  }
  return sentences;
}

void AddOutput(const FailureReport& report, Lines& lines) {
  const std::uint32_t rank = report.failures[report.root.index].global_rank;
  switch (report.root_stderr.route) {
    case StderrOfRank::Route::kInherited:
      lines.Add(fmt::format(
          "Output: rank {}'s stderr went to this terminal, above; '-t 2' also keeps it in a file",
          rank));
      return;
    case StderrOfRank::Route::kDiscarded:
      lines.Add(fmt::format("Output: rank {}'s stderr was discarded (--local-ranks-filter)", rank));
      return;
    case StderrOfRank::Route::kFile:
      break;
  }
  const std::vector<std::string> last =
      LastScreenLines(report.root_stderr.tail, kStderrLines, kMaxOutputLine);
  if (last.empty()) {
    lines.Add(fmt::format("Output: rank {} wrote nothing to stderr", rank));
    return;
  }
  lines.Add(fmt::format("Output: the end of rank {}'s stderr:", rank));
  for (const std::string& line : last) {
    lines.Add("  | " + line);
  }
}

// Last, so that the end of a long console still says where to look.
std::string LogLine(const FailureReport& report) {
  const std::string& file = report.root_stderr.path;
  if (report.log_folder.empty() && file.empty()) {
    return {};
  }
  if (file.empty()) {
    return fmt::format("Logs: {}", report.log_folder);
  }
  return report.log_folder.empty()
             ? fmt::format("Logs: {}", file)
             : fmt::format("Logs: {} (that stderr: {})", report.log_folder, file);
}

}  // namespace

std::string FormatFailureBlock(const FailureReport& report) {
  const std::string title = report.name + " FAILED";
  std::size_t width = CountCodePoints(title);
  std::string root;
  std::string others;
  std::size_t index = 0;
  for (std::size_t i = 0; i < report.failures.size(); ++i) {
    if (report.failures[i].status.success()) {
      continue;
    }
    const std::string entry = FormatEntry(index++, report.failures[i], report.host);
    width = std::max(width, WidestLine(entry));
    if (i == report.root.index) {
      root = entry;
    } else {
      others += (others.empty() ? "" : "\n") + entry;
    }
  }
  width = std::min(width, kMaxWidth);
  return fmt::format(
      "\n{0}\n{2}\n{1}\nFailures:\n{3}\n{1}\nRoot Cause (first observed failure):\n"
      "{4}\n{0}\n",
      std::string(width, '='), std::string(width, '-'), title,
      others.empty() ? "  <NO_OTHER_FAILURES>" : others, root);
}

std::string FormatDiagnosis(const FailureReport& report) {
  Lines lines;
  lines.Add(CauseLine(report));
  const std::string reason = ReasonLine(report);
  lines.Add(reason.empty() ? reason : "  " + reason);
  lines.Add("  ", report.hints.facts, kMaxFacts);
  lines.Add("Fix: ", report.hints.fixes, kMaxFixes);
  lines.Add("Then: ", Consequences(report), kMaxConsequences);
  lines.Add("Note: ", report.warnings, kMaxWarnings);
  AddOutput(report, lines);
  lines.Add(LogLine(report));
  return lines.Take();
}

std::string FormatFailureReport(const FailureReport& report) {
  return FormatFailureBlock(report) + FormatDiagnosis(report);
}

std::string FormatAttemptLine(const ProcessFailure& root, const std::string& program) {
  return fmt::format("failed (exitcode: {}) local_rank: {} (pid: {}) of binary: {}",
                     root.status.exit_code(), root.local_rank, root.pid, program);
}

std::string EntrypointName(const std::vector<std::string>& command, bool default_interpreter) {
  if (command.empty()) {
    return {};
  }
  if (!default_interpreter) {
    return command.front();
  }
  const auto name = std::find_if(
      command.begin() + 1, command.end(),
      [](const std::string& argument) { return argument.empty() || argument.front() != '-'; });
  return name == command.end() ? std::string() : *name;
}

}  // namespace ddprun
