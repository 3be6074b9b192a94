#include "agent/process/log_pump.h"

#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>

#include <algorithm>
#include <csignal>

#include "tests/support/catch.h"
#include "tests/support/logs/pump_bench.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DDPRUN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DDPRUN_SANITIZED 1
#endif
#endif

namespace ddprun {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("tee'd streams go raw to their files and with prefix to their console stream") {
  auto [out_read, out_write] = TestPipe();
  auto [err_read, err_write] = TestPipe();
  Bench bench(std::move(out_write), std::move(err_write));
  {
    const UniqueFd out0 = bench.Attach(0);
    const UniqueFd err0 = bench.Attach(0, StdStream::kErr);
    const UniqueFd out11 = bench.Attach(11);
    CHECK((::fcntl(out0.get(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((::fcntl(out0.get(), F_GETFL) & O_NONBLOCK) == 0);
    WriteAll(out0, "hello\r\nraw \xFF bytes\n");
    WriteAll(err0, "oops\n");
    WriteAll(out11, "unfinished");
  }
  Reader out(std::move(out_read));
  Reader err(std::move(err_read));
  CHECK(bench.DrainAndFlush());
  bench.Destroy();
  CHECK(ReadFile(bench.LogOf(0)) == "hello\r\nraw \xFF bytes\n");
  CHECK(ReadFile(bench.LogOf(0, StdStream::kErr)) == "oops\n");
  CHECK(ReadFile(bench.LogOf(11)) == "unfinished");
  const auto by_rank = ByRank(out.Join());
  CHECK(by_rank.at(0) == "hello\nraw \xEF\xBF\xBD bytes\n");
  CHECK(by_rank.at(11) == "unfinished\n");
  CHECK(err.Join() == "[r0]:oops\n");
  CHECK(bench.warnings().empty());
}

TEST_CASE("the lines of many ranks on one console are whole, complete and in order") {
  auto [read_end, write_end] = TestPipe();
  UniqueFd same(::fcntl(write_end.get(), F_DUPFD_CLOEXEC, 3));
  Reader reader(std::move(read_end));
  Bench bench(std::move(write_end), std::move(same));
  constexpr std::uint32_t kRanks = 6;
  constexpr int kLines = 4000;
  std::vector<std::thread> workers;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    const StdStream stream = rank % 2 == 0 ? StdStream::kOut : StdStream::kErr;
    auto fd = std::make_shared<UniqueFd>(bench.Attach(rank, stream));
    workers.emplace_back([fd, rank] {
      std::string_view text;
      const std::string all = Numbered(rank, kLines);
      text = all;
      for (std::size_t size = 1; !text.empty(); size = size * 7 % 5003) {
        WriteAll(*fd, text.substr(0, size));
        text.remove_prefix(std::min(size, text.size()));
      }
    });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  workers.clear();
  CHECK(bench.DrainAndFlush());
  bench.Destroy();
  const auto by_rank = ByRank(reader.Join());
  REQUIRE(by_rank.size() == kRanks);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    CHECK(by_rank.at(rank) == Numbered(rank, kLines));
    CHECK(ReadFile(bench.LogOf(rank, rank % 2 == 0 ? StdStream::kOut : StdStream::kErr)) ==
          Numbered(rank, kLines));
  }
}

TEST_CASE("filter files hold the matching lines of all ranks, and exist in any case") {
  Bench bench(Nowhere(), Nowhere());
  LogsSpecs specs;
  specs.duplicate_stdout_filters = {"loss", "x,y"};
  specs.duplicate_stderr_filters = {"E"};
  LogsDest dest;
  dest.filtered_stdout = bench.temp() / "filtered_stdout.log";
  dest.filtered_stderr = bench.temp() / "filtered_stderr.log";
  REQUIRE(bench.pump().OpenFilters(dest, specs).has_value());
  CHECK(std::filesystem::exists(dest.filtered_stderr));
  {
    const UniqueFd first = bench.Attach(0);
    const UniqueFd second = bench.Attach(1);
    WriteAll(first, "loss 1\nother\nloss 2\n");
    WriteAll(second, "a x,y b\n");
  }
  CHECK(bench.Drain());
  const auto by_rank = ByRank(ReadFile(dest.filtered_stdout));
  CHECK(by_rank.at(0) == "loss 1\nloss 2\n");
  CHECK(by_rank.at(1) == "a x,y b\n");
  CHECK(ReadFile(dest.filtered_stderr).empty());

  // The next attempt has files of its own, and may have none.
  REQUIRE(bench.pump().OpenFilters(LogsDest{}, LogsSpecs{}).has_value());
  { WriteAll(bench.Attach(2), "loss 3\n"); }
  CHECK(bench.Drain());
  CHECK(ByRank(ReadFile(dest.filtered_stdout)).count(2) == 0);
}

TEST_CASE("a file that cannot be created is an error before the spawn") {
  Bench bench(Nowhere(), Nowhere());
  StreamPlan plan;
  plan.route = StreamPlan::Route::kTee;
  plan.file = bench.temp() / "missing/stdout.log";
  const auto attached = bench.pump().Attach(plan, StdStream::kOut, 0);
  REQUIRE_FALSE(attached.has_value());
  CHECK(attached.error().message.find(plan.file) != std::string::npos);
  LogsDest dest;
  dest.filtered_stderr = bench.temp() / "missing/filtered_stderr.log";
  CHECK_FALSE(bench.pump().OpenFilters(dest, LogsSpecs{}).has_value());
}

TEST_CASE("text without newline is on the console while the worker waits") {
  auto [read_end, write_end] = TestPipe();
  Bench bench(std::move(write_end), Nowhere());
  Reader reader(std::move(read_end));
  const UniqueFd worker = bench.Attach(0);
  const TimePoint start = MonotonicNow();
  WriteAll(worker, "Name: ");
  CHECK(reader.WaitForText("[r0]:Name: \n"));
  const Duration waited = MonotonicNow() - start;
  CHECK(waited >= milliseconds(700));
  CHECK(waited < seconds(3));
  WriteAll(worker, "\rloading\rdone");
  CHECK(reader.WaitForText("[r0]:done\n"));
}

TEST_CASE("a full disk is said once for each file, and the worker and the console go on") {
  auto [read_end, write_end] = TestPipe();
  Reader reader(std::move(read_end));
  Bench bench(std::move(write_end), Nowhere());
  const std::string text = Numbered(3, 20000);
  {
    const UniqueFd worker = bench.Attach(3, StdStream::kOut, "/dev/full");
    CHECK(WriteAll(worker, text));
  }
  CHECK(bench.DrainAndFlush());
  bench.Destroy();
  CHECK(ByRank(reader.Join()).at(3) == text);
  REQUIRE(bench.warnings().size() == 1);
  CHECK(bench.warnings()[0].find("worker 3: write '/dev/full': no space left on device") == 0);
}

TEST_CASE("a survivor that holds the pipe does not hold up the end, and is still heard") {
  auto [read_end, write_end] = TestPipe();
  Reader reader(std::move(read_end));
  Bench bench(std::move(write_end), Nowhere());
  const UniqueFd survivor = bench.Attach(0);
  WriteAll(survivor, "last words");
  const TimePoint start = MonotonicNow();
  CHECK(bench.Drain());
  CHECK(MonotonicNow() - start < seconds(3));
  CHECK(reader.WaitForText("[r0]:last words\n"));
  WriteAll(survivor, "still here\n");
  CHECK(reader.WaitForText("[r0]:still here\n"));
  // It is known now: the next drain does not even wait for the quiet time.
  CHECK(bench.Drain({seconds(60), seconds(60)}));
}

TEST_CASE("a survivor that never stops talking does not hold up the end either") {
  Bench bench(Nowhere(), Nowhere());
  std::atomic<bool> stop = false;
  std::thread chatter([&stop, fd = std::make_shared<UniqueFd>(bench.Attach(0))] {
    while (!stop && WriteAll(*fd, "and another thing\n")) {
    }
  });
  CHECK(bench.Drain());
  stop = true;
  chatter.join();
}

TEST_CASE("drains may overlap, and with nothing attached they end at once") {
  Bench bench(Nowhere(), Nowhere());
  CHECK(bench.Drain());
  const UniqueFd worker = bench.Attach(0);
  Occasion first;
  Occasion second;
  bench.pump().Drain({}, [&first] { first.Happen(); });
  bench.pump().Drain({}, [&second] { second.Happen(); });
  CHECK(first.Wait());
  CHECK(second.Wait());
}

TEST_CASE("a pump can be destroyed while workers still write") {
  ::signal(SIGPIPE, SIG_IGN);
  Bench bench(Nowhere(), Nowhere());
  std::thread worker([fd = std::make_shared<UniqueFd>(bench.Attach(0))] {
    while (WriteAll(*fd, "x\n")) {  // Until EPIPE says that nobody reads.
    }
  });
  bench.pump().Drain({seconds(60), seconds(60)}, [] {});
  bench.Destroy();
  worker.join();
}

// The writer itself uses only what is allowed after fork() in a program with threads.
pid_t StartAbortingWorker(const UniqueFd& out, const std::string& text) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    WriteAll(out, text);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::signal(SIGABRT, SIG_DFL);
    ::kill(::getpid(), SIGABRT);
    ::_exit(1);
  }
  return pid;
}

TEST_CASE("a worker that prints 20,000 lines and aborts loses none of them, 50 times") {
  const std::string text = Numbered(0, 20000) + "the end";
  for (int run = 0; run < 50; ++run) {
    auto [read_end, write_end] = TestPipe();
    Reader reader(std::move(read_end));
    Bench bench(std::move(write_end), Nowhere());
    UniqueFd out = bench.Attach(0);
    const pid_t pid = StartAbortingWorker(out, text);
    out.Reset();
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    REQUIRE(WIFSIGNALED(status));
    REQUIRE(bench.DrainAndFlush());
    bench.Destroy();
    REQUIRE(ByRank(reader.Join()).at(0) == text + "\n");
    REQUIRE(ReadFile(bench.LogOf(0)) == text);
  }
}

long PeakKilobytes() {
  const std::string status = ReadFile("/proc/self/status");
  return std::stol(status.substr(status.find("VmHWM:") + 6));
}

TEST_CASE("a line of 100 MB passes through bounded memory") {
  auto [read_end, write_end] = TestPipe();
  Bench bench(std::move(write_end), Nowhere());
  constexpr std::size_t kLength = std::size_t{100} << 20;
  std::size_t shown = 0;
  std::size_t lines = 0;
  std::thread reader([&, fd = std::make_shared<UniqueFd>(std::move(read_end))] {
    std::vector<char> buffer(std::size_t{256} << 10);
    for (ssize_t got = 0; (got = ::read(fd->get(), buffer.data(), buffer.size())) > 0;) {
      shown += static_cast<std::size_t>(std::count(buffer.begin(), buffer.begin() + got, 'x'));
      lines += static_cast<std::size_t>(std::count(buffer.begin(), buffer.begin() + got, '\n'));
    }
  });
  WriteFile("/proc/self/clear_refs", "5");  // Starts the peak anew.
  [[maybe_unused]] const long before = PeakKilobytes();
  {
    const UniqueFd worker = bench.Attach(0);
    const std::string part(std::size_t{1} << 20, 'x');
    for (std::size_t written = 0; written < kLength; written += part.size()) {
      WriteAll(worker, part);
    }
    WriteAll(worker, "\n");
  }
  CHECK(bench.DrainAndFlush());
#ifndef DDPRUN_SANITIZED  // Sanitizers keep freed memory for a while.
  CHECK(PeakKilobytes() - before < 40 * 1024);
#endif
  bench.Destroy();
  reader.join();
  CHECK(shown == kLength);
  CHECK(lines >= 100);  // More if the writer did not get the processor for a second.
  CHECK(std::filesystem::file_size(bench.LogOf(0)) == kLength + 1);
}

TEST_CASE("a terminal shows whole lines") {
  int master = -1;
  int slave = -1;
  termios raw{};
  ::cfmakeraw(&raw);
  REQUIRE(::openpty(&master, &slave, nullptr, &raw, nullptr) == 0);
  const UniqueFd hold(::fcntl(slave, F_DUPFD_CLOEXEC, 3));
  Bench bench{UniqueFd(slave), UniqueFd(::fcntl(slave, F_DUPFD_CLOEXEC, 3))};
  Reader reader{UniqueFd(master)};
  {
    const UniqueFd out = bench.Attach(0);
    const UniqueFd err = bench.Attach(1, StdStream::kErr);
    WriteAll(out, Numbered(0, 2000));
    WriteAll(err, Numbered(1, 2000));
  }
  CHECK(bench.DrainAndFlush());
  const std::size_t expected = Numbered(0, 2000).size() * 2 + 4000 * 5;
  CHECK(reader.WaitFor([expected](const std::string& text) { return text.size() >= expected; }));
  std::string console;
  reader.WaitFor([&console](const std::string& text) {
    console = text;
    return true;
  });
  CHECK(ByRank(console).at(0) == Numbered(0, 2000));
  CHECK(ByRank(console).at(1) == Numbered(1, 2000));
}

}  // namespace
}  // namespace ddprun
