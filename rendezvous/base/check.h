#pragma once

// DDP_CHECK(condition): an invariant of ours. On in every build; a violation is our bug, so it
// prints the place and the condition and aborts. Input from outside is checked with Expected, never
// with this.

namespace ddprun {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace ddprun

#define DDP_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::ddprun::CheckFailed(__FILE__, __LINE__, #condition))
