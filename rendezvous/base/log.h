#pragma once

// The launcher's own log, over spdlog: one line per message on stderr, in torch's shape
// ("W0409 07:28:49.529000 1234 ddprun] text", torch 2.4 and newer), every line of a longer text
// prefixed. By STYLE section 5 only NodeAgent, the server's top and main log; library code returns
// errors. Callable from any thread.

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace ddprun {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Messages below the level are dropped; the default is kWarning, as torchrun's.
void SetLogLevel(LogLevel level);

// Where finished lines go (each ends with a newline). By default straight to stderr; NodeAgent puts
// its non-blocking console writer here while it runs. Pass nullptr to return to the default.
void SetLogSink(std::function<void(std::string_view line)> sink);

void Log(LogLevel level, std::string_view text);

template <typename... Args>
void LogDebug(fmt::format_string<Args...> format, Args&&... args) {
  Log(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogInfo(fmt::format_string<Args...> format, Args&&... args) {
  Log(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogWarning(fmt::format_string<Args...> format, Args&&... args) {
  Log(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogError(fmt::format_string<Args...> format, Args&&... args) {
  Log(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace ddprun
