#include "launcher/script/local_rank_argument.h"

#include <fmt/format.h>

namespace ddprun {
namespace {

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

std::optional<std::string> DecideLocalRankArgument(const LocalRankQuestion& question) {
  using Mode = LocalRankPolicy::Mode;
  const bool pass = question.policy.mode == Mode::kAlways ||
                    (question.policy.mode == Mode::kAuto && AutoPasses(question));
  return pass ? std::optional<std::string>(ChooseSpelling(question) + "=${local_rank}")
              : std::nullopt;
}

}  // namespace ddprun
