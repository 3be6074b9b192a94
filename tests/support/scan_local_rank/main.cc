// scan_local_rank FILE: one line "<spelling> <line> <source> <command|subcommand>" per declaration.

#include <cstdio>

#include "launcher/script/script_source.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: scan_local_rank FILE\n", stderr);
    return 2;
  }
  const ddprun::Expected<std::string> text = ddprun::ReadPythonFile(argv[1]);
  if (!text) {
    std::fprintf(stderr, "scan_local_rank: %s\n", text.error().message.c_str());
    return 1;
  }
  for (const ddprun::LocalRankDeclaration& one : ddprun::ScanForLocalRank(*text).declarations) {
    std::printf("%s %u %s %s\n", one.spelling.c_str(), one.line,
                std::string(ddprun::ToString(one.source)).c_str(),
                one.subcommand ? "subcommand" : "command");
  }
  return 0;
}
