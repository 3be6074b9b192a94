#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/config/build_context.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

// The names that Python's logging knows; torch passes LOGLEVEL to it as it is.
constexpr std::array<std::string_view, 8> kLevels = {"CRITICAL", "FATAL", "ERROR", "WARN",
                                                     "WARNING",  "INFO",  "DEBUG", "NOTSET"};

Expected<void> ReadLogLevel(const Environment& environment, LauncherVariables& variables) {
  const std::optional<std::string> level = environment.Get("LOGLEVEL");
  if (!level) {
    return {};
  }
  if (std::find(kLevels.begin(), kLevels.end(), *level) == kLevels.end()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("LOGLEVEL={}: expected DEBUG, INFO, WARNING, ERROR or CRITICAL", *level));
  }
  variables.log_level = *level;
  return {};
}

std::string TemporaryDirectory(const Environment& environment) {
  for (const std::string_view name : {"TMPDIR", "TEMP", "TMP"}) {
    const std::optional<std::string> directory = environment.Get(name);
    if (directory && !directory->empty()) {
      return *directory;
    }
  }
  return "/tmp";
}

// Unset, not a number or not positive: the check is off, as in torch.
std::optional<double> PositiveSeconds(const std::optional<std::string>& text) {
  const std::optional<double> seconds = text ? ParsePythonFloat(*text) : std::nullopt;
  return seconds && std::isfinite(*seconds) && *seconds > 0 ? seconds : std::nullopt;
}

}  // namespace

Expected<void> BuildLauncherVariables(BuildContext& context) {
  const Environment& environment = context.environment;
  LauncherVariables& variables = context.config.variables;
  if (Expected<void> read = ReadLogLevel(environment, variables); !read) {
    return read;
  }
  variables.python_exec = environment.Get("PYTHON_EXEC");
  variables.error_file = environment.Get("TORCHELASTIC_ERROR_FILE");
  variables.omp_num_threads_set = environment.Get("OMP_NUM_THREADS").has_value();
  variables.enable_file_timer = environment.Get("TORCHELASTIC_ENABLE_FILE_TIMER") == "1";
  variables.timer_file = environment.Get("TORCHELASTIC_TIMER_FILE");
  variables.share_rdzv_store = environment.Get("TORCH_DISABLE_SHARE_RDZV_TCP_STORE") != "1";
  variables.temporary_directory = TemporaryDirectory(environment);
  variables.uninterruptible_state_timeout =
      PositiveSeconds(environment.Get("TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT"));
  return {};
}

}  // namespace ddprun
