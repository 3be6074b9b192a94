#pragma once

// A log pump whose console is any two descriptors, and the output of test workers.

#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "agent/process/log_pump.h"
#include "tests/support/catch.h"
#include "tests/support/logs/io.h"

namespace ddprun {

inline constexpr Duration kLong = std::chrono::seconds(10);

// A pump whose console is any two descriptors.
class Bench {
 public:
  Bench(UniqueFd out, UniqueFd err)
      : console_(std::make_shared<ConsoleWriter>(std::move(out), std::move(err))),
        pump_(std::make_unique<LogPump>(console_, [this](const std::string& warning) {
          {
            const std::lock_guard<std::mutex> lock(mutex_);
            warnings_.push_back(warning);
          }
          if (on_warning) {
            on_warning();
          }
        })) {}

  std::function<void()> on_warning;  // Runs on the pump's thread.

  LogPump& pump() { return *pump_; }
  ConsoleWriter& console() { return *console_; }

  UniqueFd Attach(std::uint32_t rank, StdStream stream = StdStream::kOut, std::string file = "") {
    StreamPlan plan;
    plan.route = StreamPlan::Route::kTee;
    plan.file = file.empty() ? LogOf(rank, stream) : std::move(file);
    plan.prefix = fmt::format("[r{}]:", rank);
    return std::move(pump_->Attach(plan, stream, rank).value());
  }

  std::string LogOf(std::uint32_t rank, StdStream stream = StdStream::kOut) const {
    return temp_ / fmt::format("{}.{}.log", rank, stream == StdStream::kOut ? "out" : "err");
  }

  bool Drain(const LogDrainLimits& limits = {}) {
    auto done = std::make_shared<Occasion>();
    pump_->Drain(limits, [done] { done->Happen(); });
    return done->Wait();
  }

  bool DrainAndFlush() { return Drain() && console_->Flush(kLong, kLong); }

  void Destroy() {
    pump_.reset();
    console_.reset();
  }

  std::vector<std::string> warnings() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return warnings_;
  }
  const TempDir& temp() const { return temp_; }

 private:
  TempDir temp_;
  mutable std::mutex mutex_;
  std::vector<std::string> warnings_;
  std::shared_ptr<ConsoleWriter> console_;
  std::unique_ptr<LogPump> pump_;
};

inline UniqueFd Nowhere() {
  return OpenForWriting("/dev/null");
}

inline std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

inline std::string Numbered(std::uint32_t rank, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += fmt::format("rank {} line {:07} {}\n", rank, i, std::string(80, 'x'));
  }
  return text;
}

// The lines of one rank on the console, without their prefix.
inline std::map<std::uint32_t, std::string> ByRank(const std::string& console) {
  std::map<std::uint32_t, std::string> by_rank;
  for (const std::string& line : LinesOf(console)) {
    const std::size_t end = line.find("]:");
    if (line.rfind("[r", 0) != 0 || end == std::string::npos) {
      FAIL("not a line of one rank: " << line.substr(0, 200));
    }
    const auto rank = static_cast<std::uint32_t>(std::stoul(line.substr(2, end - 2)));
    by_rank[rank] += line.substr(end + 2) + "\n";
  }
  return by_rank;
}

}  // namespace ddprun
