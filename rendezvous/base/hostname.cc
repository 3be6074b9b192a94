#include "rendezvous/base/hostname.h"

#include <unistd.h>

#include <array>

namespace ddprun {

std::string Hostname() {
  std::array<char, 256> name{};  // Longer than HOST_NAME_MAX and its end.
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace ddprun
