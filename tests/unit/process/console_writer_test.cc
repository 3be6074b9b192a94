#include "agent/process/console_writer.h"

#include <fmt/format.h>
#include <pty.h>
#include <sys/socket.h>
#include <termios.h>

#include "tests/support/catch.h"
#include "tests/support/logs/io.h"

namespace ddprun {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLong = seconds(10);

UniqueFd Nowhere() {
  return OpenForWriting("/dev/null");
}

bool IsNonBlocking(int fd) {
  return (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

std::string Block(char c) {
  return std::string((std::size_t{1} << 20) - 1, c) + "\n";
}

// Waits for a condition that another thread brings about.
bool Eventually(const std::function<bool()>& condition) {
  const TimePoint limit = MonotonicNow() + kLong;
  while (!condition()) {
    if (MonotonicNow() >= limit) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

TEST_CASE("chunks arrive in order and whole") {
  auto [read_end, write_end] = TestPipe();
  Reader reader(std::move(read_end));
  std::string expected;
  {
    ConsoleWriter console(std::move(write_end), Nowhere());
    for (int i = 0; i < 5000; ++i) {
      const std::string line = fmt::format("line {}\n", i);
      expected += line;
      REQUIRE(console.Write(StdStream::kOut, line));
    }
    CHECK(console.Write(StdStream::kOut, ""));
    CHECK(console.Flush(kLong, kLong));
  }
  CHECK(reader.Join() == expected);
}

TEST_CASE("two streams into one file share a buffer and keep their order") {
  auto [read_end, write_end] = TestPipe();
  Reader reader(std::move(read_end));
  std::string expected;
  {
    UniqueFd second(::fcntl(write_end.get(), F_DUPFD_CLOEXEC, 3));
    ConsoleWriter console(std::move(write_end), std::move(second));
    CHECK(console.streams_are_one());
    for (int i = 0; i < 1000; ++i) {
      console.Write(StdStream::kOut, fmt::format("out {}\n", i));
      console.Write(StdStream::kErr, fmt::format("err {}\n", i));
      expected += fmt::format("out {}\nerr {}\n", i, i);
    }
    CHECK(console.Flush(kLong, kLong));
  }
  CHECK(reader.Join() == expected);
}

TEST_CASE("a reader that stands still costs lines, which are counted and said") {
  auto [read_end, write_end] = TestPipe();
  const int writer_fd = write_end.get();
  ConsoleWriter console(std::move(write_end), Nowhere());
  std::size_t taken = 0;
  while (console.Write(StdStream::kOut, Block('a'))) {
    ++taken;
    REQUIRE(taken < 20);
  }
  CHECK(console.IsFull(StdStream::kOut));
  CHECK_FALSE(console.IsFull(StdStream::kErr));
  CHECK_FALSE(console.Write(StdStream::kOut, "x\ny\n"));
  CHECK_FALSE(IsNonBlocking(writer_fd));

  SECTION("the launcher's own lines still fit, within their reserve") {
    CHECK(console.WriteOwn(StdStream::kOut, Block('o')));
    std::size_t own = 1;
    while (console.WriteOwn(StdStream::kOut, Block('o'))) {
      ++own;
      REQUIRE(own < 4);
    }
  }
  SECTION("waiting for it ends") {
    CHECK_FALSE(console.Flush(milliseconds(50), kLong));
    CHECK_FALSE(console.Flush(kLong, milliseconds(50)));
    CHECK(Eventually([&] { return console.IsStalled(StdStream::kOut, MonotonicNow()); }));
    CHECK_FALSE(console.IsStalled(StdStream::kErr, MonotonicNow()));
  }
  SECTION("when it goes on, the loss is said once, in its place") {
    Occasion room;
    console.SetRoomCallback([&room] { room.Happen(); });
    Reader reader(std::move(read_end));
    CHECK(room.Wait());
    console.SetRoomCallback(nullptr);
    CHECK(console.Write(StdStream::kOut, "after\n"));
    // One refused block that ended the loop, and the two lines.
    CHECK(reader.WaitForText("\nddprun: 3 lines dropped, console reader too slow\nafter\n"));
    CHECK(console.Flush(kLong, kLong));
    CHECK(reader.WaitFor(
        [taken](const std::string& text) { return text.size() == (taken << 20) + 49 + 6; }));
    // Nobody else holds the write end once the writer is gone; the reader then ends.
  }
}

TEST_CASE("a loss is also said if nothing follows") {
  auto [read_end, write_end] = TestPipe();
  ConsoleWriter console(std::move(write_end), Nowhere());
  while (console.Write(StdStream::kOut, Block('a'))) {
  }
  Reader reader(std::move(read_end));
  CHECK(console.Flush(kLong, kLong));
  CHECK(reader.WaitForText("\nddprun: 1 line dropped, console reader too slow\n"));
}

TEST_CASE("a reader that has gone is remembered and disturbs nobody") {
  auto [read_end, write_end] = TestPipe();
  ConsoleWriter console(std::move(write_end), Nowhere());
  Occasion room;
  console.SetRoomCallback([&room] { room.Happen(); });
  read_end.Reset();
  console.Write(StdStream::kOut, "lost\n");
  CHECK(room.Wait());
  CHECK(console.IsBroken(StdStream::kOut));
  CHECK_FALSE(console.IsBroken(StdStream::kErr));
  CHECK_FALSE(console.Write(StdStream::kOut, "also lost\n"));
  CHECK_FALSE(console.IsFull(StdStream::kOut));
  CHECK(console.Flush(kLong, kLong));
}

TEST_CASE("a closed descriptor and a full disk break the stream") {
  ConsoleWriter console(UniqueFd(), OpenForWriting("/dev/full"));
  CHECK(console.IsBroken(StdStream::kOut));
  CHECK_FALSE(console.Write(StdStream::kOut, "x\n"));
  console.Write(StdStream::kErr, "x\n");
  CHECK(console.Flush(kLong, kLong));
  CHECK(console.IsBroken(StdStream::kErr));
}

TEST_CASE("a terminal that hangs up breaks the stream") {
  int master = -1;
  int slave = -1;
  REQUIRE(::openpty(&master, &slave, nullptr, nullptr, nullptr) == 0);
  UniqueFd terminal(master);
  ConsoleWriter console{UniqueFd(slave), Nowhere()};
  terminal.Reset();
  console.Write(StdStream::kOut, "x\n");
  CHECK(console.Flush(kLong, kLong));
  CHECK(console.IsBroken(StdStream::kOut));
}

TEST_CASE("a descriptor that somebody else made non-blocking works and stays so") {
  int ends[2] = {-1, -1};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  UniqueFd keep(::dup(ends[0]));
  ::fcntl(ends[1], F_SETFL, 0);  // The reader's end blocks.
  const std::string block = Block('s');
  {
    ConsoleWriter console{UniqueFd(ends[0]), Nowhere()};
    for (int i = 0; i < 4; ++i) {
      CHECK(console.Write(StdStream::kOut, block));
    }
    Reader reader{UniqueFd(ends[1])};
    CHECK(console.Flush(kLong, kLong));
    CHECK(IsNonBlocking(keep.get()));
    CHECK(reader.WaitFor([&](const std::string& text) { return text.size() == 4 * block.size(); }));
    ::shutdown(keep.get(), SHUT_RDWR);
  }
}

TEST_CASE("a writer whose reader stands still can be left at once") {
  auto [read_end, write_end] = TestPipe();
  const TimePoint start = MonotonicNow();
  {
    ConsoleWriter console(std::move(write_end), Nowhere());
    console.Write(StdStream::kOut, Block('a'));
    CHECK_FALSE(console.Flush(milliseconds(20), seconds(1)));
  }
  CHECK(MonotonicNow() - start < seconds(2));
}

TEST_CASE("writers on many threads never mix their lines") {
  auto [read_end, write_end] = TestPipe();
  Reader reader(std::move(read_end));
  {
    ConsoleWriter console(std::move(write_end), Nowhere());
    std::vector<std::thread> threads;
    for (int writer = 0; writer < 4; ++writer) {
      threads.emplace_back([&console, writer] {
        for (int i = 0; i < 500; ++i) {
          console.WriteOwn(StdStream::kOut,
                           std::string(50, static_cast<char>('a' + writer)) + "\n");
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    CHECK(console.Flush(kLong, kLong));
  }
  const std::string& text = reader.Join();
  REQUIRE(text.size() == 4 * 500 * 51);
  for (std::size_t at = 0; at < text.size(); at += 51) {
    REQUIRE(text.find_first_not_of(text[at], at) == at + 50);
  }
}

}  // namespace
}  // namespace ddprun
