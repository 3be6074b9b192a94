// Any bytes are a Python file to the scanner and the last words of a worker to the explainer.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "launcher/script/local_rank_scan.h"
#include "launcher/script/python_tokens.h"
#include "launcher/script/rejected_local_rank.h"
#include "launcher/script/worker_command.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ddprun::LocalRankScan scan = ddprun::ScanForLocalRank(text);
  for (const ddprun::LocalRankDeclaration& one : scan.declarations) {
    if (one.line == 0 || one.line > size + 1) {
      std::abort();
    }
  }
  for (const ddprun::PythonToken& token : ddprun::TokenizePython(text).tokens) {
    if (token.kind == ddprun::PythonTokenKind::kString) {
      ddprun::DecodePythonString(token.text);
    }
  }
  ddprun::LaunchedCommand command;
  command.words = {"ddprun-launch", "train.py"};
  command.script_at = 1;
  command.local_rank_argument = "--local-rank=${local_rank}";
  command.scan = scan;
  ddprun::ExplainRejectedLocalRank(text, command);
  if (ddprun::SubstituteLocalRank(text, 1).size() > size + size / 10 + 1) {
    std::abort();
  }
  return 0;
}
