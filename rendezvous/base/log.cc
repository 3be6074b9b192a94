#include "rendezvous/base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cctype>
#include <memory>
#include <mutex>

#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

// Level as one capital letter, which spdlog's own patterns cannot print.
class LevelLetter final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    static constexpr std::string_view kLetters = "DDIWECO";  // trace ... off
    out.push_back(kLetters[static_cast<std::size_t>(message.level)]);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return spdlog::details::make_unique<LevelLetter>();
  }
};

class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void SetTarget(std::function<void(std::string_view)> target) {
    const std::lock_guard<std::mutex> lock(mutex_);
    target_ = std::move(target);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (target_) {
      target_(std::string_view(line.data(), line.size()));
      return;
    }
    // Best effort: there is nobody to tell that stderr is gone.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  }
  void flush_() override {}

 private:
  std::function<void(std::string_view)> target_;
};

struct LogState {
  std::shared_ptr<LineSink> sink = std::make_shared<LineSink>();
  spdlog::logger logger{"ddprun", sink};

  LogState() {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<LevelLetter>('*').set_pattern("%*%m%d %H:%M:%S.%f %P %n] %v");
    logger.set_formatter(std::move(formatter));
    logger.set_level(spdlog::level::warn);
  }
};

LogState& State() {
  static LogState state;
  return state;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

void SetLogLevel(LogLevel level) {
  State().logger.set_level(ToSpdlog(level));
}

void SetLogSink(std::function<void(std::string_view line)> sink) {
  State().sink->SetTarget(std::move(sink));
}

void Log(LogLevel level, std::string_view text) {
  spdlog::logger& logger = State().logger;
  if (!logger.should_log(ToSpdlog(level))) {
    return;
  }
  for (const std::string& line : Split(text, '\n')) {
    logger.log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
  }
}

}  // namespace ddprun
