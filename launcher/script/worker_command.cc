#include "launcher/script/worker_command.h"

#include <algorithm>

namespace ddprun {
namespace {

// The child of --run-path. torchrun runs the script in a multiprocessing child wrapped by @record;
// this does the same in a plain interpreter: the script sees its own argv and is __main__, an
// exception is written to TORCHELASTIC_ERROR_FILE in the schema of torch's ErrorHandler before it
// is raised on, and the exit status of SystemExit stays.
constexpr std::string_view kRunPathBootstrap = R"py(import sys


def _ddprun_record(error):
    import json, os, time, traceback
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    record = {
        "message": {
            "message": "%s: %s" % (type(error).__name__, error),
            "extraInfo": {
                "py_callstack": traceback.format_exc(),
                "timestamp": str(int(time.time())),
            },
        }
    }
    try:
        with open(path, "w") as file:
            json.dump(record, file)
    except OSError as problem:
        print("ddprun: cannot write the error file: %s" % problem, file=sys.stderr)


def _ddprun_run():
    import faulthandler, runpy
    sys.argv = sys.argv[1:]
    try:
        faulthandler.enable(all_threads=True)
    except Exception as problem:
        print("ddprun: cannot enable the fault handler: %s" % problem, file=sys.stderr)
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except Exception as error:
        _ddprun_record(error)
        raise


_ddprun_run()
)py";

bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool IsNameChar(char c) {
  return IsNameStart(c) || (c >= '0' && c <= '9');
}

// The identifier at the start of the text; empty if there is none.
std::string_view LeadingName(std::string_view text) {
  if (text.empty() || !IsNameStart(text.front())) {
    return {};
  }
  const auto end = std::find_if_not(text.begin(), text.end(), IsNameChar);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

// One `$...` of a template and how many characters it spans.
struct Placeholder {
  std::string_view name;
  std::size_t width = 1;
};

Placeholder ReadPlaceholder(std::string_view text) {
  const bool braced = text.substr(0, 2) == "${";
  const std::string_view name = LeadingName(text.substr(braced ? 2 : 1));
  if (!braced) {
    return {name, 1 + name.size()};
  }
  const bool closed = !name.empty() && text.substr(2 + name.size(), 1) == "}";
  return closed ? Placeholder{name, name.size() + 3} : Placeholder{};
}

}  // namespace

std::string SubstituteLocalRank(std::string_view text, std::uint32_t local_rank) {
  std::string result;
  while (!text.empty()) {
    const std::size_t dollar = std::min(text.find('$'), text.size());
    result += text.substr(0, dollar);
    text.remove_prefix(dollar);
    if (text.substr(0, 2) == "$$") {
      result += '$';
      text.remove_prefix(2);
    } else if (!text.empty()) {
      const Placeholder placeholder = ReadPlaceholder(text);
      result += placeholder.name == "local_rank" ? std::to_string(local_rank)
                                                 : std::string(text.substr(0, placeholder.width));
      text.remove_prefix(placeholder.width);
    }
  }
  return result;
}

std::vector<std::string> BuildWorkerArgv(const WorkerCommand& command, std::uint32_t local_rank) {
  const WorkerTarget& target = command.target;
  std::vector<std::string> argv;
  if (target.kind == WorkerTarget::Kind::kProgram) {
    argv.push_back(target.name);
  } else {
    argv = {command.interpreter, "-u"};
    if (target.kind == WorkerTarget::Kind::kModule) {
      argv.emplace_back("-m");
    } else if (target.kind == WorkerTarget::Kind::kRunPath) {
      argv.emplace_back("-c");
      argv.emplace_back(kRunPathBootstrap);
    }
    argv.push_back(SubstituteLocalRank(target.name, local_rank));
  }
  if (command.local_rank_argument) {
    argv.push_back(SubstituteLocalRank(*command.local_rank_argument, local_rank));
  }
  for (const std::string& argument : target.args) {
    argv.push_back(SubstituteLocalRank(argument, local_rank));
  }
  return argv;
}

}  // namespace ddprun
