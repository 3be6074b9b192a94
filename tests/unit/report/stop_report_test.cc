#include "launcher/report/stop_report.h"

#include <algorithm>
#include <csignal>

#include "tests/support/catch.h"

namespace ddprun {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

StoppedWorker Ended(std::uint32_t rank, int code, Duration after) {
  return {rank, {ExitStatus::Kind::kExited, code, false}, after, false};
}

StoppedWorker Killed(std::uint32_t rank) {
  return {rank, {ExitStatus::Kind::kSignaled, SIGKILL, false}, seconds(30), true};
}

StopReport Report(std::vector<StoppedWorker> workers) {
  StopReport report;
  report.signal = SIGTERM;
  report.sender_pid = 12;
  report.sender_name = "slurmstepd";
  report.ran = seconds(3605);
  report.grace = seconds(30);
  report.workers = std::move(workers);
  return report;
}

TEST_CASE("a stopped job says who stopped it and how each worker ended, in one line") {
  CHECK(FormatStopReport(Report({Ended(0, 0, milliseconds(2900)), Killed(1)})) ==
        "stopped by SIGTERM from pid 12 (slurmstepd) after 1:00:05; workers: rank 0 ended 0 after "
        "3 s, rank 1 killed after the grace of 30 s\n");
}

TEST_CASE("workers that ended alike share a line") {
  StopReport report = Report({Ended(1, 0, seconds(1)), Ended(0, 0, seconds(1))});
  report.workers.push_back({2, {ExitStatus::Kind::kSignaled, SIGTERM, false}, seconds(2), false});
  report.sender_name.clear();
  CHECK(FormatStopReport(report) ==
        "stopped by SIGTERM from pid 12 after 1:00:05; workers: ranks 0-1 ended 0 after 1 s, rank "
        "2 ended by SIGTERM after 2 s\n");
}

TEST_CASE("a signal without a sender is the terminal's") {
  StopReport report = Report({});
  report.sender_pid = 0;
  report.signal = SIGINT;
  report.ran = milliseconds(5999);
  CHECK(FormatStopReport(report) == "stopped by SIGINT after 0:00:05; no worker was running\n");
}

TEST_CASE("a thousand different ends take ten lines") {
  std::vector<StoppedWorker> workers;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    workers.push_back(Ended(i, 0, seconds(i)));
  }
  const std::string text = FormatStopReport(Report(workers));
  CHECK(std::count(text.begin(), text.end(), '\n') ==
        static_cast<std::ptrdiff_t>(kMaxStopReportLines));
  CHECK(text.find("\n  rank 7 ended 0 after 7 s\n  and 992 other ends\n") != std::string::npos);
}

TEST_CASE("the sender's name cannot steer the terminal") {
  StopReport report = Report({});
  report.sender_name = "a\x1b[31mb\nc";
  CHECK(FormatStopReport(report).find("(ab?c)") != std::string::npos);
}

TEST_CASE("long times are shown in hours") {
  CHECK(FormatHours(std::chrono::hours(49)) == "49:00:00");
  CHECK(FormatHours(seconds(61)) == "0:01:01");
}

}  // namespace
}  // namespace ddprun
