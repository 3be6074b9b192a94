#include "launcher/script/local_rank_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "launcher/script/local_rank_rules.h"
#include "launcher/script/python_source.h"

namespace ddprun {
namespace {

auto Key(const LocalRankDeclaration& declaration) {
  return std::tie(declaration.line, declaration.spelling, declaration.source,
                  declaration.subcommand);
}

void SortUnique(std::vector<LocalRankDeclaration>& declarations) {
  std::sort(declarations.begin(), declarations.end(),
            [](const auto& a, const auto& b) { return Key(a) < Key(b); });
  declarations.erase(std::unique(declarations.begin(), declarations.end(),
                                 [](const auto& a, const auto& b) { return Key(a) == Key(b); }),
                     declarations.end());
}

}  // namespace

const LocalRankDeclaration* LocalRankScan::Find(std::string_view spelling) const {
  const auto found = std::find_if(declarations.begin(), declarations.end(), [&](const auto& one) {
    return one.spelling == spelling && !one.subcommand;
  });
  return found == declarations.end() ? nullptr : &*found;
}

LocalRankScan ScanForLocalRank(std::string_view python_source) {
  const PythonSource source(python_source);
  LocalRankScan scan;
  scan.complete = source.complete();
  const LocalRankFound keep = [&](LocalRankDeclaration declaration) {
    if (scan.declarations.size() < LocalRankScan::kMaxDeclarations) {
      scan.declarations.push_back(std::move(declaration));
    }
  };
  FindDeclaringCalls(source, keep);
  FindDeclaringSignatures(source, keep);
  FindArgvLooks(source, keep);
  SortUnique(scan.declarations);
  return scan;
}

std::string_view ToString(LocalRankSource source) {
  switch (source) {
    case LocalRankSource::kArgparse:
      return "argparse";
    case LocalRankSource::kClick:
      return "click";
    case LocalRankSource::kFlags:
      return "flags";
    case LocalRankSource::kSignature:
      return "signature";
    case LocalRankSource::kGetopt:
      return "getopt";
    case LocalRankSource::kDocopt:
      return "docopt";
    case LocalRankSource::kArgv:
      return "sys.argv";
  }
  return "unknown";
}

std::string Describe(std::string_view file, const LocalRankDeclaration& declaration) {
  return fmt::format("{}:{} declares {} ({}{})", file, declaration.line, declaration.spelling,
                     ToString(declaration.source),
                     declaration.subcommand ? ", of a subcommand" : "");
}

}  // namespace ddprun
