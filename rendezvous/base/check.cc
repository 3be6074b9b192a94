#include "rendezvous/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace ddprun {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "ddprun: internal error: %s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace ddprun
