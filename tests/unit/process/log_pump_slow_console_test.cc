// LogPump when the console is slow, stands still, or is gone.

#include "agent/process/log_line_assembler.h"
#include "agent/process/log_pump.h"
#include "tests/support/catch.h"
#include "tests/support/logs/pump_bench.h"

namespace ddprun {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("a console that nobody reads blocks neither the workers nor the files nor the end") {
  auto [read_end, write_end] = TestPipe();
  Bench bench(std::move(write_end), Nowhere());
  constexpr int kLines = 150000;  // About 16 MB each.
  std::vector<std::thread> workers;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    auto fd = std::make_shared<UniqueFd>(bench.Attach(rank));
    workers.emplace_back([fd, rank] { CHECK(WriteAll(*fd, Numbered(rank, kLines))); });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  workers.clear();
  CHECK(bench.Drain());
  CHECK_FALSE(bench.console().Flush(milliseconds(10), seconds(1)));
  CHECK(ReadFile(bench.LogOf(0)) == Numbered(0, kLines));
  CHECK(ReadFile(bench.LogOf(1)) == Numbered(1, kLines));

  Reader reader(std::move(read_end));
  CHECK(bench.console().Flush(kLong, kLong));
  bench.Destroy();
  std::size_t shown = 0;
  std::size_t dropped = 0;
  for (const std::string& line : LinesOf(reader.Join())) {
    if (line.rfind("ddprun: ", 0) == 0) {
      dropped += std::stoul(line.substr(8));
      CHECK(line.find(" dropped, console reader too slow") != std::string::npos);
    } else {
      ++shown;
      REQUIRE(line.size() == std::string("[r0]:rank 0 line 0000000 ").size() + 80);
    }
  }
  CHECK(dropped > 0);
  CHECK(shown + dropped == 2 * kLines);
}

TEST_CASE("a console that is read slowly loses nothing") {
  auto [read_end, write_end] = TestPipe();
  Bench bench(std::move(write_end), Nowhere());
  constexpr int kLines = 200000;  // About 21 MB: far more than the buffer.
  std::thread worker(
      [fd = std::make_shared<UniqueFd>(bench.Attach(0))] { WriteAll(*fd, Numbered(0, kLines)); });
  std::string console;
  std::thread slow([&console, fd = std::make_shared<UniqueFd>(std::move(read_end))] {
    std::vector<char> buffer(std::size_t{256} << 10);
    for (ssize_t got = 1; got > 0;) {
      got = ::read(fd->get(), buffer.data(), buffer.size());
      console.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      std::this_thread::sleep_for(milliseconds(2));  // What is under test is a slow reader.
    }
  });
  worker.join();
  CHECK(bench.DrainAndFlush());
  bench.Destroy();
  slow.join();
  CHECK(ByRank(console).at(0) == Numbered(0, kLines));
}

// Fills the console's buffer and then the worker's pipe, in writes that do not end with lines; what
// was written.
std::string FillUp(Bench& bench, const UniqueFd& worker) {
  constexpr std::size_t kWrite = 65536;
  ::fcntl(worker.get(), F_SETFL, O_NONBLOCK);
  const std::string text = Numbered(0, 200000);  // More than fits in both.
  std::size_t at = 0;
  bool pipe_full = false;
  while (at + kWrite < text.size() && (!pipe_full || !bench.console().IsFull(StdStream::kOut))) {
    const ssize_t written = ::write(worker.get(), text.data() + at, kWrite);
    pipe_full = written < 0;
    at += static_cast<std::size_t>(std::max<ssize_t>(written, 0));
  }
  REQUIRE(pipe_full);
  return text.substr(0, at);
}

// Reads a little now and then, until it is told to hurry.
class Crawler {
 public:
  explicit Crawler(UniqueFd fd) : fd_(std::move(fd)), thread_([this] { Run(); }) {}
  void Hurry() { hurry_ = true; }
  std::size_t read() const { return read_; }
  const std::string& Join() {
    thread_.join();
    return text_;
  }

 private:
  void Run() {
    std::vector<char> buffer(std::size_t{16} << 10);
    ssize_t got = 0;
    while ((got = ::read(fd_.get(), buffer.data(), buffer.size())) > 0) {
      text_.append(buffer.data(), static_cast<std::size_t>(got));
      read_ = text_.size();
      if (!hurry_) {
        std::this_thread::sleep_for(milliseconds(50));
      }
    }
  }

  UniqueFd fd_;
  std::atomic<bool> hurry_ = false;
  std::atomic<std::size_t> read_ = 0;
  std::string text_;
  std::thread thread_;
};

TEST_CASE("a line whose rest is in the pipe is not shown in two after a pause") {
  auto [read_end, write_end] = TestPipe();
  Bench bench(std::move(write_end), Nowhere());
  Crawler crawler(std::move(read_end));
  Occasion blocked;
  Occasion go_on;
  bench.on_warning = [&] {
    blocked.Happen();
    go_on.Wait();
  };
  std::string written;
  {
    // The pump reads no further than the console's buffer has room for: within a line. Then its
    // thread is held up until that line is old and the room is there, both at once.
    const UniqueFd worker = bench.Attach(0);
    const UniqueFd disturber = bench.Attach(9, StdStream::kErr, "/dev/full");
    written = FillUp(bench, worker);
    WriteAll(disturber, "x\n");
    REQUIRE(blocked.Wait());
    std::this_thread::sleep_for(LogLineAssembler::kPartialAge + milliseconds(150));
    crawler.Hurry();
    const TimePoint limit = MonotonicNow() + kLong;
    while (crawler.read() < ConsoleWriter::kLimit && MonotonicNow() < limit) {
      std::this_thread::yield();
    }
    go_on.Happen();
  }
  CHECK(bench.DrainAndFlush());
  bench.Destroy();
  const std::string newline = written.back() == '\n' ? "" : "\n";
  CHECK(ByRank(crawler.Join()).at(0) == written + newline);
}

TEST_CASE("when the drain's patience is over, a slow console no longer holds it up") {
  auto [read_end, write_end] = TestPipe();
  Bench bench(std::move(write_end), Nowhere());
  Crawler crawler(std::move(read_end));  // It would take half a minute.
  // A worker that dies with its pipe full, while the console's buffer is full.
  const std::string written = FillUp(bench, bench.Attach(0));
  const TimePoint start = MonotonicNow();
  CHECK(bench.Drain({milliseconds(50), milliseconds(300)}));
  CHECK(MonotonicNow() - start < seconds(5));
  CHECK(ReadFile(bench.LogOf(0)) == written);
  crawler.Hurry();
  CHECK(bench.console().Flush(kLong, kLong));
  bench.Destroy();
  CHECK(crawler.Join().find(" dropped, console reader too slow\n") != std::string::npos);
}

TEST_CASE("the files go on when the console's reader is gone") {
  auto [read_end, write_end] = TestPipe();
  Bench bench(std::move(write_end), Nowhere());
  read_end.Reset();
  { CHECK(WriteAll(bench.Attach(0), Numbered(0, 100000))); }
  CHECK(bench.DrainAndFlush());
  CHECK(bench.console().IsBroken(StdStream::kOut));
  CHECK(ReadFile(bench.LogOf(0)) == Numbered(0, 100000));
}

}  // namespace
}  // namespace ddprun
