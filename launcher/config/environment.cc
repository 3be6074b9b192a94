#include "launcher/config/environment.h"

#include <unistd.h>

#include "launcher/config/this_machine.h"

namespace ddprun {

Environment Environment::OfProcess() {
  Environment environment;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) {
      environment.Set(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
    }
  }
  environment.set_host_test(&NamesThisMachine);
  return environment;
}

std::optional<std::string> Environment::Get(std::string_view name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? std::nullopt : std::optional<std::string>(found->second);
}

bool Environment::IsThisMachine(const std::string& host) const {
  return IsLoopbackHost(host) || (host_test_ && host_test_(host));
}

}  // namespace ddprun
