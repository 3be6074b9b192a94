// exec_worker_command script|module|program|run-path INTERPRETER LOCAL_RANK NAME [ARG...]

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/script/worker_command.h"

namespace {

ddprun::WorkerTarget::Kind KindOf(std::string_view name) {
  using Kind = ddprun::WorkerTarget::Kind;
  return name == "module"     ? Kind::kModule
         : name == "program"  ? Kind::kProgram
         : name == "run-path" ? Kind::kRunPath
                              : Kind::kScript;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fputs("usage: exec_worker_command KIND INTERPRETER LOCAL_RANK NAME [ARG...]\n", stderr);
    return 2;
  }
  const ddprun::WorkerCommand command{
      argv[2], {KindOf(argv[1]), argv[4], std::vector<std::string>(argv + 5, argv + argc)}, {}};
  std::vector<std::string> words = ddprun::BuildWorkerArgv(
      command, static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10)));
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  std::perror("exec_worker_command: exec");
  return 127;
}
