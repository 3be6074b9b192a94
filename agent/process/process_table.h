#pragma once

// What /proc says about processes (proc(5)). Plain reads, any thread, nothing is kept. A process
// may end at any moment; functions then return nothing rather than an error.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

struct ProcessInfo {
  pid_t pid = -1;
  pid_t parent = -1;
  pid_t group = -1;
  pid_t session = -1;
  char state = '?';  // R, S, D, T, t, Z, X, I as in /proc/<pid>/stat.
  std::int64_t threads = 0;
  std::uint64_t start_time = 0;  // Clock ticks since boot: with the pid an identity.
  std::string command;           // comm: at most 15 bytes, any byte.

  // False for a zombie. A process whose main thread has ended while others run also shows Z, but
  // has more than one thread.
  bool alive() const { return (state != 'Z' && state != 'X') || threads > 1; }
};

// The text of /proc/<pid>/stat; nullopt for anything malformed.
std::optional<ProcessInfo> ParseStat(std::string_view text);

std::optional<ProcessInfo> ReadProcess(pid_t pid);

// Every process that we can see, in the order of /proc.
std::vector<ProcessInfo> ReadAllProcesses();

// The children of one process, zombies included. `complete` is false when the kernel was built
// without CONFIG_PROC_CHILDREN or /proc is not there; use ReadAllProcesses then.
struct Children {
  std::vector<pid_t> pids;
  bool complete = true;
};
Children ReadChildren(pid_t pid);

// The value of a variable in the environment the process was started with; nullopt when it has
// none, or when we may not look.
std::optional<std::string> ReadEnvironmentVariable(pid_t pid, std::string_view name);

// Sends a signal to exactly this process: opens a pidfd and compares the start time before. 0 or an
// errno value; ESRCH when it is gone.
int SignalProcess(const ProcessInfo& process, int signal);

}  // namespace ddprun
