#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>

#include "launcher/config/value_parsers.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

tl::unexpected<Error> Bad(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

struct LimitKey {
  std::string_view name;
  std::optional<std::uint64_t> StoreConf::*field;
};

constexpr std::array<LimitKey, 5> kLimits = {{
    {"max_key", &StoreConf::max_key},
    {"max_value", &StoreConf::max_value},
    {"max_request", &StoreConf::max_request},
    {"max_store", &StoreConf::max_store},
    {"max_backlog", &StoreConf::max_backlog},
}};

Expected<void> SetLimit(const LimitKey& limit, const std::string& value, StoreConf& conf) {
  const std::optional<long long> bytes = ParsePythonInt(value);
  if (!bytes || *bytes < 1) {
    return Bad(fmt::format("{}={}: expected a number of bytes from 1", limit.name, value));
  }
  conf.*limit.field = static_cast<std::uint64_t>(*bytes);
  return {};
}

Expected<void> SetDialect(const std::string& value, StoreConf& conf) {
  if (value == "auto") {
    conf.dialect = StoreConf::Dialect::kAuto;
  } else if (value == "2x") {
    conf.dialect = StoreConf::Dialect::k2x;
  } else if (value == "1x") {
    conf.dialect = StoreConf::Dialect::k1x;
  } else {
    return Bad(fmt::format("dialect={}: expected auto, 2x or 1x", value));
  }
  return {};
}

Expected<void> SetLegacy(const std::string& value, StoreConf& conf) {
  if (value != "2.1") {
    return Bad(fmt::format("legacy={}: expected 2.1", value));
  }
  conf.legacy = value;
  return {};
}

bool IsNumericAddress(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return ::inet_pton(AF_INET, text.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), address.data()) == 1;
}

Expected<void> SetBind(const std::string& value, StoreConf& conf) {
  conf.bind_address.clear();
  if (value == "loopback") {
    conf.bind = StoreConf::Bind::kLoopback;
  } else if (value == "any") {
    conf.bind = StoreConf::Bind::kAny;
  } else if (IsNumericAddress(value)) {
    conf.bind = StoreConf::Bind::kAddress;
    conf.bind_address = value;
  } else {
    return Bad(fmt::format("bind={}: expected loopback, any or a numeric address", value));
  }
  return {};
}

Expected<void> SetKey(const KeyValue& pair, StoreConf& conf) {
  for (const LimitKey& limit : kLimits) {
    if (pair.key == limit.name) {
      return SetLimit(limit, pair.value, conf);
    }
  }
  if (pair.key == "dialect") {
    return SetDialect(pair.value, conf);
  }
  if (pair.key == "legacy") {
    return SetLegacy(pair.value, conf);
  }
  if (pair.key == "bind") {
    return SetBind(pair.value, conf);
  }
  return Bad(
      fmt::format("no key is named '{}'; the keys are max_key, max_value, max_request, "
                  "max_store, max_backlog, dialect, legacy and bind",
                  pair.key));
}

}  // namespace

Expected<StoreConf> ParseStoreConf(std::string_view text) {
  const Expected<std::vector<KeyValue>> pairs = ParseKeyValues(text);
  if (!pairs) {
    return tl::unexpected(pairs.error());
  }
  StoreConf conf;
  for (const KeyValue& pair : *pairs) {
    if (Expected<void> set = SetKey(pair, conf); !set) {
      return tl::unexpected(set.error());
    }
  }
  return conf;
}

}  // namespace ddprun
