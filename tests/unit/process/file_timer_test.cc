#include "agent/process/file_timer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "agent/process/unique_fd.h"
#include "tests/support/catch.h"

namespace ddprun {
namespace {

namespace fs = std::filesystem;

std::string Line(pid_t pid, const std::string& scope, double expiration_time, int signal) {
  return fmt::format(
      "{{\"version\": 1, \"pid\": {}, \"scope_id\": \"{}\", \"expiration_time\": {}, \"signal\": "
      "{}}}",
      pid, scope, expiration_time, signal);
}

TEST_CASE("a request is read as torch's client writes it") {
  const auto request = ParseFileTimerLine(
      R"({"version": 1, "pid": 42, "scope_id": "train.py#10", "expiration_time": 1700000000.25, "signal": 9})");
  REQUIRE(request);
  CHECK(request->pid == 42);
  CHECK(request->scope_id == "train.py#10");
  CHECK(request->expiration_time == 1700000000.25);
  CHECK(request->signal == 9);
  const auto release = ParseFileTimerLine(Line(42, "s", -1, 0));
  CHECK(release->expiration_time == -1);
  CHECK(ParseFileTimerLine(R"({"pid":1,"scope_id":"","expiration_time":5})")->signal == SIGKILL);
  CHECK(ParseFileTimerLine(Line(1, "s", 5, -3))->signal == 0);
}

TEST_CASE("what no client writes is no request") {
  for (const char* line :
       {"",
        "x",
        "[]",
        "1",
        "{}",
        "{",
        R"({"pid":1,"scope_id":"s"})",
        R"({"pid":0,"scope_id":"s","expiration_time":1,"signal":9})",
        R"({"pid":-5,"scope_id":"s","expiration_time":1,"signal":9})",
        R"({"pid":1.5,"scope_id":"s","expiration_time":1,"signal":9})",
        R"({"pid":99999999999,"scope_id":"s","expiration_time":1,"signal":9})",
        R"({"pid":18446744073709551615,"scope_id":"s","expiration_time":1,"signal":9})",
        R"({"pid":"1","scope_id":"s","expiration_time":1,"signal":9})",
        R"({"pid":1,"scope_id":2,"expiration_time":1,"signal":9})",
        R"({"pid":1,"scope_id":"s","expiration_time":"1","signal":9})",
        R"({"pid":1,"scope_id":"s","expiration_time":NaN,"signal":9})",
        R"({"pid":1,"scope_id":"s","expiration_time":1e999,"signal":9})",
        R"({"pid":1,"scope_id":"s","expiration_time":1,"signal":65})",
        R"({"pid":1,"scope_id":"s","expiration_time":1,"signal":null})",
        R"({"pid":1,"scope_id":"s","expiration_time":1,"signal":9} x)",
        "\xff\xfe"}) {
    CAPTURE(line);
    CHECK_FALSE(ParseFileTimerLine(line).has_value());
  }
}

TEST_CASE("lines are put together from any pieces") {
  FileTimerLines lines;
  CHECK(lines.Add("a\nb").size() == 1);
  CHECK(lines.Add("").empty());
  CHECK(lines.Add("c\n\n\nd\n") == std::vector<std::string>{"bc", "d"});
}

TEST_CASE("a line beyond the limit is dropped, counted, and the next one is whole") {
  FileTimerLines lines;
  const std::string most(FileTimerLines::kMaxLine, 'x');
  CHECK(lines.Add(most + "\n").size() == 1);
  CHECK(lines.Add(most).empty());
  CHECK(lines.Add("y").empty());
  CHECK(lines.Add(most + most).empty());
  CHECK(lines.Add("z\nok\n") == std::vector<std::string>{"ok"});
  CHECK(lines.overlong() == 1);
}

TEST_CASE("the earliest expired timer with a signal decides for its process") {
  FileTimerTable table;
  table.Apply({7, "late", 90, SIGTERM});
  table.Apply({7, "early", 80, SIGINT});
  table.Apply({7, "silent", 10, 0});
  table.Apply({7, "future", 1000, SIGKILL});
  table.Apply({8, "other", 101, SIGKILL});
  table.Apply({9, "mute", 50, 0});
  const auto expired = table.TakeExpired(100);
  REQUIRE(expired.size() == 1);
  CHECK(expired[0].pid == 7);
  CHECK(expired[0].signal == SIGINT);
  CHECK(expired[0].scope_id == "early");
  CHECK(expired[0].expiration_time == 80);
  CHECK(table.size() == 1);
  CHECK(table.TakeExpired(100).empty());
  CHECK(table.TakeExpired(101).size() == 1);
  CHECK(table.empty());
}

TEST_CASE("a timer is moved by a new request and gone with its release or its process") {
  FileTimerTable table;
  table.Apply({7, "s", 10, 9});
  table.Apply({7, "s", 200, 15});
  CHECK(table.TakeExpired(100).empty());
  table.Apply({7, "t", 10, 9});
  table.Apply({7, "t", -1, 0});
  table.Apply({8, "t", -1, 0});
  CHECK(table.size() == 1);
  table.Apply({8, "s", 10, 9});
  table.Keep([](pid_t pid) { return pid == 7; });
  CHECK(table.TakeExpired(100).empty());
  CHECK(table.size() == 1);
}

TEST_CASE("the table has a limit that moves and releases do not feel") {
  FileTimerTable table;
  for (std::size_t i = 0; i < FileTimerTable::kMaxTimers; ++i) {
    CHECK(table.Apply({1, std::to_string(i), 5, 9}));
  }
  CHECK_FALSE(table.Apply({1, "more", 5, 9}));
  CHECK(table.Apply({1, "0", 6, 9}));
  CHECK(table.Apply({1, "1", -1, 0}));
  CHECK(table.Apply({1, "more", 5, 9}));
}

// A server on a FIFO in a folder of its own, and what it reported.
class TestServer {
 public:
  TestServer() {
    std::string name = (fs::temp_directory_path() / "ddprun-timer-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    path_ = (folder_ / "watchdog").string();
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  ~TestServer() {
    server_.reset();
    fs::remove_all(folder_);
  }

  Expected<void> Start() {
    auto started = FileTimerServer::Start(io_, path_,
                                          {[this](pid_t pid) { return pids_.count(pid) != 0; },
                                           [this](const ExpiredFileTimer& timer) {
                                             expired_.push_back(timer);
                                             if (stop_when_expired_) {
                                               server_.reset();
                                             }
                                           }});
    if (!started) {
      return tl::unexpected<Error>(started.error());
    }
    server_ = std::move(*started);
    return {};
  }

  // As a client: opened, written and closed for each request.
  void Send(const std::string& bytes) const {
    const UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(fd);
    REQUIRE(::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }

  // Handles events until the condition holds; ten seconds are the safety net.
  template <typename Condition>
  bool RunUntil(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    io_.restart();
    while (!condition() && std::chrono::steady_clock::now() < end) {
      io_.run_one_for(std::chrono::milliseconds(100));
    }
    return condition();
  }

  asio::io_context io_;
  fs::path folder_;
  std::string path_;
  std::set<pid_t> pids_{42};
  std::vector<ExpiredFileTimer> expired_;
  bool stop_when_expired_ = false;
  std::unique_ptr<FileTimerServer> server_;
};

TEST_CASE("an expired timer is reported once, with its signal and scope") {
  TestServer test;
  REQUIRE(test.Start());
  test.Send(Line(42, "far", 4e9, SIGKILL) + "\n" + Line(42, "scope", 1.5, SIGTERM) + "\n");
  REQUIRE(test.RunUntil([&] { return !test.expired_.empty(); }));
  CHECK(test.expired_[0].pid == 42);
  CHECK(test.expired_[0].signal == SIGTERM);
  CHECK(test.expired_[0].scope_id == "scope");
  CHECK(test.server_->counters().requests == 2);
  CHECK(test.expired_.size() == 1);
}

TEST_CASE("released timers and those of strangers never expire") {
  TestServer test;
  REQUIRE(test.Start());
  test.Send(Line(42, "a", 1, 9) + "\n" + Line(42, "a", -1, 0) + "\n" + Line(43, "b", 1, 9) + "\n");
  test.Send(Line(42, "c", 2, 15) + "\n");
  REQUIRE(test.RunUntil([&] { return !test.expired_.empty(); }));
  REQUIRE(test.expired_.size() == 1);
  CHECK(test.expired_[0].scope_id == "c");
  CHECK(test.server_->counters().refused == 1);
}

TEST_CASE("a process that is no longer ours is not reported") {
  TestServer test;
  REQUIRE(test.Start());
  test.pids_.insert(44);
  test.Send(Line(42, "gone", 1, 9) + "\n");
  REQUIRE(test.RunUntil([&] { return test.server_->counters().requests == 1; }));
  test.pids_.erase(42);
  test.Send(Line(44, "here", 1, 9) + "\n");
  REQUIRE(test.RunUntil([&] { return !test.expired_.empty(); }));
  REQUIRE(test.expired_.size() == 1);
  CHECK(test.expired_[0].pid == 44);
}

TEST_CASE("bad lines are counted and the next request is still served") {
  TestServer test;
  REQUIRE(test.Start());
  test.Send("garbage\n{\"pid\": 1}\n" + std::string(5000, 'x') + "\n" + Line(42, "s", 1, 9) + "\n");
  REQUIRE(test.RunUntil([&] { return !test.expired_.empty(); }));
  CHECK(test.server_->counters().bad == 3);
  CHECK(test.server_->counters().requests == 1);
}

TEST_CASE("clients that come and go cost no wake-ups afterwards") {
  TestServer test;
  REQUIRE(test.Start());
  test.Send(Line(42, "s", 4e9, 9) + "\n");
  test.Send(Line(42, "s", -1, 0) + "\n");
  REQUIRE(test.RunUntil([&] { return test.server_->counters().requests == 2; }));
  // One check may be on its way; after it nothing is pending, and the closed ends are no event.
  test.io_.run_for(std::chrono::milliseconds(2 * FileTimerServer::kCheckIntervalMs));
  CHECK(test.io_.run_for(std::chrono::milliseconds(3 * FileTimerServer::kCheckIntervalMs)) == 0);
}

TEST_CASE("the FIFO is made anew with the umask's mode and removed at the end") {
  TestServer test;
  std::ofstream(test.path_) << "an older file";
  const mode_t before = ::umask(0027);
  const bool started = test.Start().has_value();
  ::umask(before);
  REQUIRE(started);
  struct stat status {};
  REQUIRE(::lstat(test.path_.c_str(), &status) == 0);
  CHECK(S_ISFIFO(status.st_mode));
  CHECK((status.st_mode & 0777) == 0640);
  CHECK(test.server_->path() == test.path_);
  test.server_->Stop();
  test.server_->Stop();
  CHECK_FALSE(fs::exists(test.path_));
  REQUIRE(test.Start());
  CHECK(fs::exists(test.path_));
  test.server_.reset();
  CHECK_FALSE(fs::exists(test.path_));
}

TEST_CASE("another file in the FIFO's place is left alone at the end") {
  TestServer test;
  REQUIRE(test.Start());
  fs::remove(test.path_);
  std::ofstream(test.path_) << "somebody else's";
  test.server_->Stop();
  CHECK(fs::is_regular_file(test.path_));
}

TEST_CASE("the server may be destroyed by its own report") {
  TestServer test;
  REQUIRE(test.Start());
  test.pids_.insert(43);
  test.stop_when_expired_ = true;
  test.Send(Line(42, "s", 1, 9) + "\n" + Line(43, "s", 1, 9) + "\n");
  REQUIRE(test.RunUntil([&] { return test.server_ == nullptr; }));
  test.io_.run_for(std::chrono::milliseconds(FileTimerServer::kCheckIntervalMs));
  CHECK(test.expired_.size() == 1);
  CHECK_FALSE(fs::exists(test.path_));
}

TEST_CASE("a path where no FIFO can be is an error that names it") {
  TestServer test;
  test.path_ = test.folder_.string();
  const auto folder = test.Start();
  REQUIRE_FALSE(folder);
  CHECK(folder.error().message.find(test.path_) != std::string::npos);
  test.path_ = "/nosuch/folder/timer";
  CHECK(test.Start().error().code == ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ddprun
