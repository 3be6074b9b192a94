#include "launcher/report/stop_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/core/clean_text.h"
#include "agent/core/rank_text.h"

namespace ddprun {
namespace {

constexpr std::size_t kMaxName = 40;
constexpr std::size_t kGroupsOnOneLine = 2;

std::int64_t WholeSeconds(Duration duration) {
  return std::chrono::round<std::chrono::seconds>(duration).count();
}

std::string HowItEnded(const StoppedWorker& worker, const StopReport& report) {
  if (worker.grace_expired) {
    return fmt::format("killed after the grace of {} s", WholeSeconds(report.grace));
  }
  const std::string how = worker.status.kind == ExitStatus::Kind::kExited
                              ? fmt::format("ended {}", worker.status.value)
                              : fmt::format("ended by {}", SignalName(worker.status.value));
  return fmt::format("{} after {} s", how, WholeSeconds(worker.after));
}

std::vector<std::string> Endings(const StopReport& report) {
  std::vector<std::pair<std::string, std::vector<std::uint32_t>>> groups;
  for (const StoppedWorker& worker : report.workers) {
    const std::string how = HowItEnded(worker, report);
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&how](const auto& group) { return group.first == how; });
    if (found == groups.end()) {
      found = groups.insert(groups.end(), {how, {}});
    }
    found->second.push_back(worker.global_rank);
  }
  std::vector<std::string> endings;
  for (const auto& [how, ranks] : groups) {
    endings.push_back(fmt::format("{} {}", DescribeRanks(ranks), how));
  }
  return endings;
}

std::string Sender(const StopReport& report) {
  if (report.sender_pid == 0) {
    return {};
  }
  const std::string name = ScreenLine(report.sender_name, kMaxName);
  return fmt::format(" from pid {}{}", report.sender_pid,
                     name.empty() ? name : fmt::format(" ({})", name));
}

}  // namespace

std::string FormatHours(Duration duration) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  const std::int64_t seconds = std::chrono::floor<std::chrono::seconds>(duration).count();
  return fmt::format("{}:{:02}:{:02}", seconds / kHour, seconds % kHour / kMinute,
                     seconds % kMinute);
}

std::string FormatStopReport(const StopReport& report) {
  std::string text = fmt::format("stopped by {}{} after {}; ", SignalName(report.signal),
                                 Sender(report), FormatHours(report.ran));
  const std::vector<std::string> endings = Endings(report);
  if (endings.empty()) {
    return text + "no worker was running\n";
  }
  const bool one_line = endings.size() <= kGroupsOnOneLine;
  text += "workers:";
  std::size_t shown = 0;
  const std::size_t limit = kMaxStopReportLines - 2;  // The first line, and "and 3 more".
  for (; shown < std::min(endings.size(), limit); ++shown) {
    const std::string_view separator = shown == 0 ? " " : ", ";
    text += fmt::format("{}{}", one_line ? separator : "\n  ", endings[shown]);
  }
  if (shown < endings.size()) {
    text += fmt::format("\n  and {} other ends", endings.size() - shown);
  }
  return text + "\n";
}

}  // namespace ddprun
