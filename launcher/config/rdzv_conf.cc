#include "launcher/config/rdzv_conf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>

#include "launcher/config/value_parsers.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

using Seconds = std::chrono::seconds;

constexpr unsigned kStatic = 1;
constexpr unsigned kC10d = 2;
constexpr unsigned kOther = 4;  // etcd and etcd-v2.

struct KeySpec {
  std::string_view name;
  unsigned backends;
};

constexpr std::array<KeySpec, 20> kKeys = {{
    {"join_timeout", kC10d},
    {"last_call_timeout", kC10d},
    {"close_timeout", kC10d},
    {"heartbeat_timeout", kC10d},
    {"keep_alive_interval", kC10d},
    {"keep_alive_max_attempt", kC10d},
    {"cas_backoff_max_seconds", kC10d},
    {"store_type", kC10d},
    {"read_timeout", kC10d},
    {"is_host", kC10d},
    {"use_libuv", kC10d},
    {"timeout", kStatic},
    {"rank", 0},  // torch overwrites it with --node-rank, whatever the back end.
    {"protocol", kOther},
    {"cert", kOther},
    {"key", kOther},
    {"cacert", kOther},
    {"etcd_prefix", kOther},
    {"ssl_cert", kOther},
    {"ssl_cert_key", kOther},
}};

// Names of the constructor's own parameters; torch dies of them with a TypeError.
constexpr std::array<std::string_view, 6> kReserved = {"backend",   "endpoint",  "run_id",
                                                       "min_nodes", "max_nodes", "local_addr"};

tl::unexpected<Error> Bad(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::string KnownKeys(RdzvBackend backend) {
  const unsigned bit = backend == RdzvBackend::kC10d ? kC10d : kStatic;
  std::vector<std::string> names;
  for (const KeySpec& key : kKeys) {
    if ((key.backends & bit) != 0) {
      names.emplace_back(key.name);
    }
  }
  return Join(names, ", ");
}

std::string_view NameOf(RdzvBackend backend) {
  return backend == RdzvBackend::kC10d ? "c10d" : "static";
}

// One sentence for a key without effect; nothing for one that the back end reads.
std::optional<std::string> WhyUnused(const std::string& name, RdzvBackend backend) {
  const auto* const key = std::find_if(kKeys.begin(), kKeys.end(),
                                       [&](const KeySpec& spec) { return spec.name == name; });
  if (key == kKeys.end()) {
    return fmt::format("no key is named '{}', ignoring it; {} knows {}", name, NameOf(backend),
                       KnownKeys(backend));
  }
  if (name == "rank") {
    return "'rank' is not used; --node-rank is";
  }
  if (name == "use_libuv" && backend == RdzvBackend::kC10d) {
    return "'use_libuv' is not used; there is one kind of store";
  }
  if (name == "cas_backoff_max_seconds" && backend == RdzvBackend::kC10d) {
    return "'cas_backoff_max_seconds' is not used; there are no competing writes to back off from";
  }
  const unsigned bit = backend == RdzvBackend::kC10d ? kC10d : kStatic;
  if ((key->backends & bit) == 0) {
    return fmt::format("'{}' is not used by the back end {}", name, NameOf(backend));
  }
  return std::nullopt;
}

Expected<long long> PositiveInteger(const std::string& key, const std::string& value) {
  const std::optional<long long> number = ParsePythonInt(value);
  // Ten digits of seconds still fit every clock that counts nanoseconds.
  constexpr long long kMax = 9'000'000'000;
  if (!number || *number < 1 || *number > kMax) {
    return Bad(fmt::format("{}={}: expected a whole number from 1", key, value));
  }
  return *number;
}

Expected<bool> Boolean(const std::string& key, std::string value) {
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const std::string_view yes : {"1", "true", "t", "yes", "y"}) {
    if (value == yes) {
      return true;
    }
  }
  for (const std::string_view no : {"0", "false", "f", "no", "n"}) {
    if (value == no) {
      return false;
    }
  }
  return Bad(fmt::format("{}={}: expected true or false", key, value));
}

// Reads the typed keys out of the raw map. The first failure sticks.
class Reader {
 public:
  explicit Reader(RdzvConf& conf) : conf_(conf) {}

  void ReadC10d() {
    RdzvConfigs& configs = conf_.configs;
    ReadStoreType();
    ReadSeconds("read_timeout", configs.read_timeout);
    ReadSeconds("join_timeout", configs.join_timeout);
    ReadSeconds("last_call_timeout", configs.last_call_timeout);
    ReadSeconds("close_timeout", configs.close_timeout);
    ReadSeconds("heartbeat_timeout", configs.heartbeat_timeout);
    ReadKeepAlive();
    ReadIsHost();
    CheckBackoff();
  }

  void ReadStatic() { ReadSeconds("timeout", conf_.configs.timeout); }

  Expected<void> result() const { return result_; }

 private:
  const std::string* Find(const std::string& key) const {
    const auto found = conf_.configs.raw.find(key);
    return found == conf_.configs.raw.end() || !result_ ? nullptr : &found->second;
  }

  std::optional<long long> Integer(const std::string& key) {
    const std::string* value = Find(key);
    if (value == nullptr) {
      return std::nullopt;
    }
    const Expected<long long> number = PositiveInteger(key, *value);
    if (!number) {
      result_ = tl::unexpected(number.error());
      return std::nullopt;
    }
    return *number;
  }

  void ReadSeconds(const std::string& key, Seconds& field) {
    if (const std::optional<long long> number = Integer(key)) {
      field = Seconds(*number);
    }
  }

  void ReadKeepAlive() {
    if (const std::optional<long long> number = Integer("keep_alive_interval")) {
      conf_.configs.keep_alive_interval = Seconds(*number);
    }
    if (const std::optional<long long> number = Integer("keep_alive_max_attempt")) {
      constexpr long long kMax = std::numeric_limits<std::uint32_t>::max();
      conf_.configs.keep_alive_max_attempt = static_cast<std::uint32_t>(std::min(*number, kMax));
    }
  }

  void ReadStoreType() {
    const std::string* value = Find("store_type");
    if (value == nullptr) {
      return;
    }
    std::string type = *value;
    std::transform(type.begin(), type.end(), type.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    conf_.file_store = type == "file";
    if (type != "file" && type != "tcp") {
      result_ = Bad(fmt::format("store_type={}: expected tcp or file", *value));
    }
  }

  void ReadIsHost() {
    const std::string* value = Find("is_host");
    if (value == nullptr) {
      return;
    }
    if (const Expected<bool> is_host = Boolean("is_host", *value)) {
      conf_.configs.is_host = *is_host;
    } else {
      result_ = tl::unexpected(is_host.error());
    }
  }

  // torch's clients wait at random before they write again; ours have no such writes.
  void CheckBackoff() {
    const std::string* value = Find("cas_backoff_max_seconds");
    if (value == nullptr) {
      return;
    }
    const std::optional<double> seconds = ParsePythonFloat(*value);
    if (!seconds || !std::isfinite(*seconds) || *seconds < 0) {
      result_ = Bad(fmt::format("cas_backoff_max_seconds={}: expected a number from 0", *value));
    }
  }

  RdzvConf& conf_;
  Expected<void> result_;
};

Expected<void> CheckReserved(const RdzvConfigs& configs) {
  for (const std::string_view name : kReserved) {
    if (configs.raw.count(std::string(name)) != 0) {
      return Bad(fmt::format("'{}' cannot be set here; it has an option of its own", name));
    }
  }
  return {};
}

}  // namespace

Expected<RdzvConf> ParseRdzvConf(std::string_view text, RdzvBackend backend) {
  const Expected<std::vector<KeyValue>> pairs = ParseKeyValues(text);
  if (!pairs) {
    return tl::unexpected(pairs.error());
  }
  RdzvConf conf;
  for (const KeyValue& pair : *pairs) {
    conf.configs.raw[pair.key] = pair.value;
  }
  if (Expected<void> allowed = CheckReserved(conf.configs); !allowed) {
    return tl::unexpected(allowed.error());
  }
  for (const auto& [name, value] : conf.configs.raw) {
    if (const std::optional<std::string> why = WhyUnused(name, backend)) {
      conf.warnings.push_back(*why);
    }
  }
  Reader reader(conf);
  backend == RdzvBackend::kC10d ? reader.ReadC10d() : reader.ReadStatic();
  if (Expected<void> read = reader.result(); !read) {
    return tl::unexpected(read.error());
  }
  return conf;
}

}  // namespace ddprun
