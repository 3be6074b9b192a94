#pragma once

// Environment: what the parser may know of the world, as a value, so that tests never touch the
// process environment or the network.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ddprun {

class Environment {
 public:
  // Answers whether a host name or numeric address names this machine.
  using HostTest = std::function<bool(const std::string& host)>;

  Environment() = default;
  Environment(std::initializer_list<std::pair<const std::string, std::string>> variables)
      : variables_(variables) {}

  // The variables of this process, and a host test that asks the interfaces and the resolver
  // (this_machine.h). For main() only.
  static Environment OfProcess();

  // The value of a variable; nullopt when it is not set. A variable set to nothing is set.
  std::optional<std::string> Get(std::string_view name) const;
  void Set(std::string name, std::string value) { variables_[std::move(name)] = std::move(value); }

  // Without a test of its own an environment knows only `localhost` and loopback addresses.
  void set_host_test(HostTest test) { host_test_ = std::move(test); }
  bool IsThisMachine(const std::string& host) const;

  const std::map<std::string, std::string, std::less<>>& variables() const { return variables_; }

 private:
  std::map<std::string, std::string, std::less<>> variables_;
  HostTest host_test_;
};

}  // namespace ddprun
