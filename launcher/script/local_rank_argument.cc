#include "launcher/script/local_rank_argument.h"

#include <fmt/format.h>

namespace ddprun {
namespace {

std::optional<std::string> ReadSpelling(std::string_view value) {
  for (const std::string_view known : {kLocalRankUnderscore, kLocalRankDash}) {
    if (value == known || value == known.substr(2)) {
      return std::string(known);
    }
  }
  return std::nullopt;
}

std::string ChooseSpelling(const LocalRankQuestion& question) {
  if (!question.policy.spelling.empty()) {
    return question.policy.spelling;
  }
  const bool underscore = question.scan.Declares(kLocalRankUnderscore);
  const bool dash = question.scan.Declares(kLocalRankDash);
  if (underscore != dash) {
    return std::string(underscore ? kLocalRankUnderscore : kLocalRankDash);
  }
  return std::string(question.torch_major.value_or(2) >= 2 ? kLocalRankDash : kLocalRankUnderscore);
}

bool AutoPasses(const LocalRankQuestion& question) {
  switch (question.program) {
    case LocalRankProgram::kDdprun:
      return question.scan.declared();
    case LocalRankProgram::kLaunch:
      return true;
    case LocalRankProgram::kTorchrun:
    case LocalRankProgram::kLaunchUseEnv:
      return false;
  }
  return false;
}

}  // namespace

Expected<LocalRankPolicy> ParseLocalRankPolicy(std::string_view value) {
  using Mode = LocalRankPolicy::Mode;
  if (value == "auto") {
    return LocalRankPolicy{Mode::kAuto, {}};
  }
  if (value == "never") {
    return LocalRankPolicy{Mode::kNever, {}};
  }
  if (value == "always") {
    return LocalRankPolicy{Mode::kAlways, {}};
  }
  constexpr std::string_view kAlways = "always:";
  if (value.substr(0, kAlways.size()) == kAlways) {
    if (auto spelling = ReadSpelling(value.substr(kAlways.size()))) {
      return LocalRankPolicy{Mode::kAlways, std::move(*spelling)};
    }
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("--local-rank-arg: '{}' is not one of auto, never, always, "
                          "always:--local_rank, always:--local-rank",
                          value));
}

std::optional<std::string> DecideLocalRankArgument(const LocalRankQuestion& question) {
  using Mode = LocalRankPolicy::Mode;
  const bool pass = question.policy.mode == Mode::kAlways ||
                    (question.policy.mode == Mode::kAuto && AutoPasses(question));
  return pass ? std::optional<std::string>(ChooseSpelling(question) + "=${local_rank}")
              : std::nullopt;
}

}  // namespace ddprun
