#pragma once

// The threads of worker output. They must never be the one that a signal is delivered to (the agent
// waits for its signals on the main thread) and must see EPIPE instead of dying of SIGPIPE, so all
// signals are blocked in them.

#include <pthread.h>

#include <csignal>
#include <functional>
#include <thread>

namespace ddprun {

// `name` shows in ps and top: at most 15 characters.
inline std::thread StartLogThread(const char* name, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // The new thread inherits it.
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace ddprun
