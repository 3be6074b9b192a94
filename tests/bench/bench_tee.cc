// How fast tee'd output passes through the launcher, and whether it arrives undamaged.
//
//   bench_tee [megabytes of each worker] [bytes of each write] [file|pipe|pty ...]
//
// Four worker processes write 100-byte lines as fast as they can through LogPump and ConsoleWriter
// to a file, to a pipe with a reader, and to a raw pseudo terminal with a reader. Every line on the
// console and every byte in the log files is checked. Prints one row for each console; exits 1 if
// anything was lost, doubled or mixed.

#include <fcntl.h>
#include <fmt/format.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "agent/process/console_writer.h"
#include "agent/process/log_pump.h"

namespace ddprun {
namespace {

constexpr std::uint32_t kWorkers = 4;
constexpr std::size_t kLineBytes = 100;
constexpr std::size_t kDigits = 10;
constexpr std::size_t kReadBytes = std::size_t{1} << 20;

struct Settings {
  std::size_t lines = 0;  // Of each worker.
  std::size_t write_bytes = 0;
};

std::string LineOf(std::uint32_t rank, std::size_t number) {
  std::string line = fmt::format("{} {:0{}} ", rank, number, kDigits);
  line.resize(kLineBytes - 1, static_cast<char>('a' + rank));
  return line + "\n";
}

void CountUp(char* digits) {
  for (char* digit = digits + kDigits - 1; ++*digit > '9'; --digit) {
    *digit = '0';
  }
}

// Checks the lines of all ranks as they come, with or without their prefix.
class Checker {
 public:
  explicit Checker(bool prefixed) {
    for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
      next_[rank] = (prefixed ? fmt::format("[default{}]:", rank) : "") + LineOf(rank, 0);
    }
    digits_at_ = next_[0].size() - kLineBytes + 2;
    rank_at_ = next_[0].size() - kLineBytes;
  }

  void Take(std::string_view bytes) {
    rest_.append(bytes);
    std::string_view text = rest_;
    const std::size_t size = next_[0].size();
    while (text.size() >= size && !damaged_) {
      const auto rank = static_cast<std::size_t>(text[rank_at_] - '0');
      damaged_ = rank >= kWorkers || std::memcmp(text.data(), next_[rank].data(), size) != 0;
      if (damaged_) {
        fmt::print("found '{}' instead of a next line\n", text.substr(0, 2 * size));
      } else {
        CountUp(next_[rank].data() + digits_at_);
        ++lines_;
        text.remove_prefix(size);
      }
    }
    rest_.erase(0, rest_.size() - text.size());
  }

  bool damaged() const { return damaged_; }
  std::size_t lines() const { return lines_; }

 private:
  std::array<std::string, kWorkers> next_;  // The line that each rank must bring next.
  std::size_t digits_at_ = 0;
  std::size_t rank_at_ = 0;
  std::string rest_;
  std::size_t lines_ = 0;
  bool damaged_ = false;
};

// Reads until so many lines have come, the end, or damage.
void CheckFrom(const UniqueFd& fd, Checker& checker, std::size_t lines) {
  std::vector<char> buffer(kReadBytes);
  while (checker.lines() < lines && !checker.damaged()) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got <= 0) {
      return;
    }
    checker.Take({buffer.data(), static_cast<std::size_t>(got)});
  }
}

[[noreturn]] void Work(const UniqueFd& out, std::uint32_t rank, const Settings& settings) {
  const std::size_t batch = std::max<std::size_t>(settings.write_bytes / kLineBytes, 1);
  std::string text;
  for (std::size_t i = 0; i < batch; ++i) {
    text += LineOf(rank, i);
  }
  // Counting the lines on costs little: each is the one of the last batch plus `batch`.
  for (std::size_t done = 0; done < settings.lines; done += batch) {
    const std::size_t now = std::min(batch, settings.lines - done);
    for (std::size_t i = 0; done != 0 && i < now; ++i) {
      std::size_t number = done + i;
      for (char* digit = text.data() + i * kLineBytes + 1 + kDigits; number != 0; --digit) {
        *digit = static_cast<char>('0' + number % 10);
        number /= 10;
      }
    }
    std::string_view rest(text.data(), now * kLineBytes);
    while (!rest.empty()) {
      const ssize_t written = ::write(out.get(), rest.data(), rest.size());
      if (written <= 0) {
        ::_exit(1);
      }
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  ::_exit(0);
}

struct Console {
  UniqueFd writer;
  UniqueFd reader;  // None for a file.
  UniqueFd hold;    // Keeps a terminal alive.
};

Console MakeConsole(const std::string& kind, const std::string& directory) {
  if (kind == "pipe") {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      std::abort();
    }
    return {UniqueFd(ends[1]), UniqueFd(ends[0]), {}};
  }
  if (kind == "pty") {
    termios raw{};
    ::cfmakeraw(&raw);
    int master = -1;
    int slave = -1;
    if (::openpty(&master, &slave, nullptr, &raw, nullptr) != 0) {
      std::abort();
    }
    return {UniqueFd(slave), UniqueFd(master), UniqueFd(::dup(slave))};
  }
  const std::string path = directory + "/console";
  return {UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)), {}, {}};
}

std::string LogOf(const std::string& directory, std::uint32_t rank) {
  return fmt::format("{}/{}.log", directory, rank);
}

bool LogsAreWhole(const std::string& directory, const Settings& settings) {
  for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
    Checker checker(false);
    CheckFrom(UniqueFd(::open(LogOf(directory, rank).c_str(), O_RDONLY | O_CLOEXEC)), checker,
              settings.lines);
    if (checker.damaged() || checker.lines() != settings.lines) {
      return false;
    }
  }
  return true;
}

std::vector<pid_t> StartWorkers(LogPump& pump, const std::string& directory,
                                const Settings& settings) {
  std::vector<pid_t> pids;
  for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
    StreamPlan plan{StreamPlan::Route::kTee, LogOf(directory, rank),
                    fmt::format("[default{}]:", rank)};
    const UniqueFd out = std::move(pump.Attach(plan, StdStream::kOut, rank).value());
    pids.push_back(::fork());
    if (pids.back() == 0) {
      Work(out, rank, settings);
    }
  }
  return pids;
}

// Of everybody: workers, pump, console writer, reader. Says on a busy machine what an idle one can
// do.
double CpuSeconds() {
  double seconds = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    seconds += static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  }
  return seconds;
}

bool Measure(const std::string& kind, const std::string& directory, const Settings& settings) {
  Console console = MakeConsole(kind, directory);
  const bool has_reader = static_cast<bool>(console.reader);
  auto writer = std::make_shared<ConsoleWriter>(
      std::move(console.writer), UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC)));
  LogPump pump(writer, [](const std::string& warning) { fmt::print("{}\n", warning); });
  const std::size_t lines = kWorkers * settings.lines;
  Checker checker(true);
  const double cpu_before = CpuSeconds();
  const auto start = std::chrono::steady_clock::now();
  const std::vector<pid_t> pids = StartWorkers(pump, directory, settings);
  std::thread reader([&] {
    if (has_reader) {
      CheckFrom(console.reader, checker, lines);
    }
  });
  for (const pid_t pid : pids) {
    ::waitpid(pid, nullptr, 0);
  }
  std::promise<void> drained;
  pump.Drain({}, [&drained] { drained.set_value(); });
  drained.get_future().wait();
  writer->Flush(std::chrono::seconds(10), std::chrono::seconds(60));
  reader.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const double cpu = CpuSeconds() - cpu_before;
  if (!has_reader) {
    const std::string path = directory + "/console";
    CheckFrom(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), checker, lines);
  }
  const bool whole =
      !checker.damaged() && checker.lines() == lines && LogsAreWhole(directory, settings);
  const double megabytes = static_cast<double>(lines * kLineBytes) / 1e6;
  fmt::print("{:5} {:7.0f} MB in {:5.2f} s = {:4.0f} MB/s, {:.2f} CPU-s; {} of {} lines whole{}\n",
             kind, megabytes, took.count(), megabytes / took.count(), cpu, checker.lines(), lines,
             whole ? ", files complete" : ": DAMAGED");
  std::fflush(stdout);
  return whole;
}

int Main(const std::vector<std::string>& arguments) {
  ::signal(SIGPIPE, SIG_IGN);
  const std::size_t megabytes = arguments.empty() ? 100 : std::stoul(arguments[0]);
  const std::size_t write_bytes = arguments.size() < 2 ? 65536 : std::stoul(arguments[1]);
  std::vector<std::string> kinds{"file", "pipe", "pty"};
  if (arguments.size() > 2) {
    kinds.assign(arguments.begin() + 2, arguments.end());
  }
  const Settings settings{megabytes * 1000000 / kLineBytes, write_bytes};
  bool whole = true;
  for (const std::string& kind : kinds) {
    char directory[] = "/tmp/bench_tee_XXXXXX";
    if (::mkdtemp(directory) == nullptr) {
      return 1;
    }
    whole = Measure(kind, directory, settings) && whole;
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }
  return whole ? 0 : 1;
}

}  // namespace
}  // namespace ddprun

int main(int argc, char** argv) {
  return ddprun::Main({argv + 1, argv + argc});
}
