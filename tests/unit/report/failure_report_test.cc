#include "launcher/report/failure_report.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>

#include "agent/process/error_file.h"
#include "tests/support/catch.h"

namespace ddprun {
namespace {

const std::string kData = std::string(DDPRUN_TESTDATA) + "/report/";
constexpr std::int64_t kSeenMs = 1796079510000;

std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

ExitStatus Exited(int code) {
  return {ExitStatus::Kind::kExited, code, false};
}

ExitStatus Signaled(int signal, bool core = false) {
  return {ExitStatus::Kind::kSignaled, signal, core};
}

ProcessFailure Failure(std::uint32_t local_rank, std::uint32_t rank, int pid, ExitStatus status,
                       const std::string& error_file = "") {
  WorkerDeath death;
  death.local_rank = local_rank;
  death.global_rank = rank;
  death.pid = pid;
  death.status = status;
  death.error_file = error_file.empty() ? "" : kData + error_file;
  death.seen_ms = kSeenMs;
  ProcessFailure failure = DescribeDeath(death).failure;
  failure.error_file = error_file;
  return failure;
}

FailureReport Report(const std::string& name, std::vector<ProcessFailure> failures) {
  FailureReport report;
  report.name = name;
  report.host = "node1.example";
  report.root = FindRootCause(failures, false);
  report.failures = std::move(failures);
  return report;
}

std::size_t CountLines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void SetZone() {
  ::setenv("TZ", "XST-5:30", 1);
  ::tzset();
}

// Torch's own output, with the one sentence that is ours.
std::string TorchBlock(const std::string& file) {
  std::string text = ReadText(kData + file);
  const std::string mark = "@NO_TRACEBACK@";
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    text.replace(at, mark.size(), kNoTracebackHint);
  }
  return text;
}

TEST_CASE("the block is torch 2.15's, byte for byte") {
  SetZone();
  struct Case {
    std::string file;
    std::string name;
    std::vector<ProcessFailure> failures;
  };
  const std::vector<Case> cases{
      {"exit_code.txt", "exit7.py", {Failure(0, 0, 9932, Exited(7))}},
      {"signal.txt", "segv.py", {Failure(0, 0, 10090, Signaled(SIGSEGV))}},
      {"exception_and_stopped_peers.txt",
       "train.py",
       {Failure(1, 5, 9921, Exited(1), "exception.json"), Failure(0, 4, 9920, Signaled(SIGTERM)),
        Failure(2, 6, 9922, Signaled(SIGKILL))}},
      {"two_failures_string.txt",
       "two.py",
       {Failure(0, 0, 10100, Exited(3), "string.json"), Failure(1, 1, 10101, Exited(4))}},
      {"string_without_time.txt",
       "w.py",
       {Failure(0, 0, 1, Exited(1)), Failure(1, 1, 2, Exited(4), "string_without_time.json")}},
      {"no_callstack.txt", "n.py", {Failure(0, 0, 10111, Exited(3), "no_callstack.json")}},
      {"no_text.txt", "n.py", {Failure(0, 0, 10111, Exited(3), "no_text.json")}},
      {"unicode.txt", "\xc3\xa9t\xc3\xa9.py", {Failure(0, 0, 7, Exited(3), "unicode.json")}},
      {"long_title.txt", std::string(70, 'a') + ".py", {Failure(0, 0, 7, Signaled(SIGABRT))}},
      {"ties.txt",
       "t.py",
       {Failure(2, 2, 7, Exited(1)), Failure(0, 0, 5, Signaled(SIGABRT)),
        Failure(1, 1, 6, Exited(2))}}};
  for (const Case& one : cases) {
    CAPTURE(one.file);
    CHECK(FormatFailureBlock(Report(one.name, one.failures)) == TorchBlock(one.file));
  }
}

TEST_CASE("a stopped peer that ended with 0 is not in the block and takes no index") {
  std::vector<ProcessFailure> failures{Failure(0, 0, 5, Exited(0)), Failure(1, 1, 6, Exited(9))};
  failures[0].stopped_by_agent = true;
  failures[0].timestamp = 1;
  const std::string block = FormatFailureBlock(Report("t.py", failures));
  CHECK(Contains(block, "<NO_OTHER_FAILURES>"));
  CHECK(Contains(block, "[0]:\n"));
  CHECK_FALSE(Contains(block, "[1]:\n"));
  CHECK_FALSE(Contains(block, "rank      : 0"));
}

TEST_CASE("a failure of another host is shown with that host") {
  ProcessFailure failure = Failure(0, 8, 5, Exited(1));
  failure.host = "node2.example";
  const FailureReport report = Report("t.py", {failure});
  CHECK(Contains(FormatFailureBlock(report), "host      : node2.example\n"));
  CHECK(Contains(FormatDiagnosis(report), "(local_rank 0, pid 5, node2.example)"));
}

TEST_CASE("a message that no terminal can hold is cut in the middle") {
  ProcessFailure failure = Failure(0, 0, 5, Exited(1));
  failure.message = "first\n";
  for (int i = 0; i < 10000; ++i) {
    failure.message += "frame\n";
  }
  failure.message += "last";
  const std::string block = FormatFailureBlock(Report("t.py", {failure}));
  CHECK(CountLines(block) < kMaxMessageLines + 20);
  CHECK(Contains(block, "  traceback : first\n"));
  CHECK(Contains(block, "... (9602 lines left out)\n"));
  CHECK(Contains(block, "\nlast\n"));

  failure.message = std::string(1 << 20, 'x');
  CHECK(FormatFailureBlock(Report("t.py", {failure})).size() < 2000);
}

TEST_CASE("the diagnosis names the cause, the consequences and where to look") {
  std::vector<ProcessFailure> failures{
      Failure(1, 1, 9921, Exited(1), "exception.json"), Failure(0, 0, 9920, Signaled(SIGTERM)),
      Failure(2, 2, 9922, Signaled(SIGTERM)), Failure(3, 3, 9923, Signaled(SIGKILL))};
  for (std::size_t i = 1; i < failures.size(); ++i) {
    failures[i].stopped_by_agent = true;
  }
  FailureReport report = Report("train.py", failures);
  report.root_stderr = {StderrOfRank::Route::kFile, "one\nRuntimeError: bad\n",
                        "/log/1/stderr.log"};
  report.log_folder = "/log";
  report.hints = {{"a fact"}, {"do this"}};
  report.warnings = {"odd file"};
  CHECK(FormatDiagnosis(report) ==
        "Cause: rank 1 (local_rank 1, pid 9921, node1.example) ended with exit code 1: "
        "RuntimeError: bad\n"
        "  a fact\n"
        "Fix: do this\n"
        "Then: ranks 0, 2 stopped by ddprun, signal 15 (SIGTERM)\n"
        "Then: rank 3 stopped by ddprun, signal 9 (SIGKILL)\n"
        "Note: odd file\n"
        "Output: the end of rank 1's stderr:\n"
        "  | one\n"
        "  | RuntimeError: bad\n"
        "Logs: /log (that stderr: /log/1/stderr.log)\n");
  CHECK(FormatFailureReport(report) == FormatFailureBlock(report) + FormatDiagnosis(report));
}

TEST_CASE("a signal is told apart by who sent it") {
  const auto cause = [](ExitStatus status, bool ours) {
    ProcessFailure failure = Failure(0, 0, 5, status);
    failure.stopped_by_agent = ours;
    return FormatDiagnosis(Report("t.py", {failure}));
  };
  CHECK(Contains(cause(Signaled(SIGKILL), false), ") killed by SIGKILL, not by ddprun\n"));
  CHECK(Contains(cause(Signaled(SIGTERM), false), ") killed by SIGTERM, not by ddprun\n"));
  CHECK(Contains(cause(Signaled(SIGSEGV), false), ") crashed with signal 11 (SIGSEGV)\n"));
  CHECK(Contains(cause(Signaled(SIGKILL), true), ") stopped by ddprun, signal 9 (SIGKILL)\n"));
  CHECK(Contains(cause(Exited(7), false), ") ended with exit code 7\n"));
}

TEST_CASE("peers that were shot are listed under the exception") {
  std::vector<ProcessFailure> failures{Failure(0, 0, 5, Signaled(SIGKILL)),
                                       Failure(2, 2, 7, Signaled(SIGKILL)),
                                       Failure(1, 1, 6, Exited(1), "exception.json")};
  for (ProcessFailure& failure : failures) {
    failure.timestamp = 100;
    failure.seen_ms = 100500;
    failure.recorded_ms = failure.has_record() ? 100400 : 0;
  }
  failures[2].timestamp = 101;
  const FailureReport report = Report("t.py", failures);
  CHECK(report.root.reason == RootCause::Reason::kExceptionOverKill);
  const std::string text = FormatFailureReport(report);
  CHECK(Contains(text, "Root Cause (first observed failure):\n[2]:\n"));
  CHECK(Contains(text, "Cause: rank 1 "));
  CHECK(Contains(text, "training libraries kill the other ranks"));
  CHECK(Contains(text, "Then: ranks 0, 2 killed by SIGKILL, not by ddprun\n"));
}

TEST_CASE("without a file the diagnosis says where the output went") {
  FailureReport report = Report("t.py", {Failure(0, 3, 5, Exited(1))});
  CHECK(Contains(FormatDiagnosis(report), "Output: rank 3's stderr went to this terminal, above"));
  report.root_stderr.route = StderrOfRank::Route::kDiscarded;
  CHECK(Contains(FormatDiagnosis(report), "stderr was discarded (--local-ranks-filter)"));
  report.root_stderr.route = StderrOfRank::Route::kFile;
  report.root_stderr.path = "/x/stderr.log";
  CHECK(Contains(FormatDiagnosis(report), "rank 3 wrote nothing to stderr\nLogs: /x/stderr.log\n"));
  report.root_stderr.path = "";
  CHECK_FALSE(Contains(FormatDiagnosis(report), "Logs:"));
  report.log_folder = "/x";
  CHECK(Contains(FormatDiagnosis(report), "Logs: /x\n"));
}

TEST_CASE("the diagnosis fits a screen whatever goes in, and its end holds the last words") {
  std::vector<ProcessFailure> failures;
  for (std::uint32_t i = 0; i < 64; ++i) {
    failures.push_back(Failure(i, i, 5, Exited(static_cast<int>(i) + 1)));
    failures.back().headline = std::string(5000, 'h') + std::to_string(i);
  }
  FailureReport report = Report("t.py", failures);
  report.hints.facts.assign(50, std::string(5000, 'f'));
  report.hints.fixes.assign(50, "x");
  report.warnings.assign(50, "\xff\xfe");
  for (int i = 0; i < 1000; ++i) {
    report.root_stderr.tail += "line " + std::to_string(i) + std::string(3000, '.') + "\n";
  }
  report.root_stderr.tail += "ValueError: boom\n\n";
  report.root_stderr.route = StderrOfRank::Route::kFile;
  report.root_stderr.path = "/log/0/stderr.log";
  report.log_folder = "/log";
  const std::string text = FormatDiagnosis(report);
  CHECK(CountLines(text) <= kMaxDiagnosisLines);
  CHECK(text.size() < 20000);
  CHECK(Contains(text, "(and 45 more)"));
  CHECK(Contains(text, "\n  | ValueError: boom\nLogs: /log (that stderr: /log/0/stderr.log)\n"));
  CHECK_FALSE(Contains(text, "line 980."));
  CHECK(Contains(text, "line 981."));
}

TEST_CASE("the attempt's line is torch's") {
  CHECK(FormatAttemptLine(Failure(1, 9, 12, Signaled(SIGSEGV)), "/usr/bin/python3") ==
        "failed (exitcode: -11) local_rank: 1 (pid: 12) of binary: /usr/bin/python3");
}

TEST_CASE("the title names the script, or the program when that is not the interpreter") {
  CHECK(EntrypointName({"python", "-u", "train.py", "-x"}, true) == "train.py");
  CHECK(EntrypointName({"python", "-u", "-m", "pkg.mod", "a"}, true) == "pkg.mod");
  CHECK(EntrypointName({"/bin/false", "train.py"}, false) == "/bin/false");
  CHECK(EntrypointName({"python", "-u"}, true).empty());
  CHECK(EntrypointName({}, true).empty());
}

}  // namespace
}  // namespace ddprun
