#pragma once

// SignalWatch: signals as events of the agent's loop. It blocks them on the main thread (threads
// made later inherit the mask) and reads them from a signalfd(2), which, unlike a handler, also
// tells who sent them. The children's mask and dispositions are restored by the spawner.

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/process/start_signals.h"
#include "rendezvous/base/error.h"

namespace asio {
class io_context;
}  // namespace asio

namespace ddprun {

// What a signal means to the agent.
enum class SignalMeaning {
  kChild,         // SIGCHLD: something of the tree has died.
  kSuspend,       // SIGTSTP: Ctrl-Z.
  kPassOn,        // SIGUSR1, SIGUSR2, SIGWINCH: to the workers, and the job goes on.
  kEnd,           // One of --signals-to-handle: the workers get the same, and the job ends.
  kEndUnhandled,  // SIGTERM, SIGINT, SIGHUP or SIGQUIT left out of it: the workers get SIGTERM.
};
SignalMeaning MeaningOf(int signal, const std::vector<int>& handled);

// Every signal that has a meaning.
std::vector<int> WatchedSignals(const std::vector<int>& handled);

struct ReceivedSignal {
  int number = 0;
  pid_t sender = 0;  // 0: the kernel (a terminal, a limit), or a process of another pid namespace.
  std::string sender_name;  // Its command, if it still lives.
};

class SignalWatch {
 public:
  using Callback = std::function<void(const ReceivedSignal&)>;

  // Takes over the given signals; those that were ignored at start stay ignored (nohup). Main
  // thread, before any other thread exists. The callback runs on the thread of `io`.
  static Expected<std::unique_ptr<SignalWatch>> Start(asio::io_context& io,
                                                      const std::vector<int>& signals,
                                                      const StartSignals& start, Callback callback);

  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

  // Gives the signal its default disposition back and delivers it to ourselves: does not return for
  // one that ends the process; returns when a stopped process goes on (SIGTSTP).
  void RaiseWithDefault(int signal);

 private:
  struct Impl;
  explicit SignalWatch(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace ddprun
