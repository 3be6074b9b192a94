#pragma once

// Whether a worker gets its local rank as an argument, and in which spelling (DESIGN section 7).
// Pure.

#include <optional>
#include <string>
#include <string_view>

#include "launcher/script/local_rank_scan.h"
#include "rendezvous/base/error.h"

namespace ddprun {

// --local-rank-arg
struct LocalRankPolicy {
  enum class Mode { kAuto, kAlways, kNever };

  Mode mode = Mode::kAuto;
  std::string spelling;  // kAlways: the one to use; empty: as the script or torch's version says.

  friend bool operator==(const LocalRankPolicy&, const LocalRankPolicy&) = default;
};

// The command line's dialect.
enum class LocalRankProgram {
  kDdprun,        // auto passes what the script declares.
  kTorchrun,      // auto passes nothing, as torchrun.
  kLaunch,        // auto always passes it, as `python -m torch.distributed.launch`.
  kLaunchUseEnv,  // The same with --use-env: auto passes nothing.
};

struct LocalRankQuestion {
  LocalRankPolicy policy;
  LocalRankProgram program = LocalRankProgram::kDdprun;
  LocalRankScan scan;              // Of the script; empty when there is no text to read.
  std::optional<int> torch_major;  // Of the torch that the workers will import, if known.
};

// "--local-rank=${local_rank}" to put directly behind the script's name, as one word (torch never
// gives it as two), or nothing. A declared spelling wins; if both or none is declared it is the one
// of torch's version: a dash from 2.0 on and where the version is not known, else an underscore.
std::optional<std::string> DecideLocalRankArgument(const LocalRankQuestion& question);

}  // namespace ddprun
