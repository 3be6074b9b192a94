#pragma once

// The --config file: TOML of the kind that CLI11 reads. One `name = value` per line, names as the
// long options without the leading dashes (both spellings), comments with #, arrays for lists,
// `true` or `false` for flags, and a table [rdzv-conf] or [store-conf] for their keys. CLI11 2.1.2
// interprets sections, arrays and quotes; what it would pass over in silence is refused here first.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/config/option_table.h"
#include "rendezvous/base/error.h"

namespace ddprun {

struct ConfigEntry {
  OptionId id;
  std::string text;  // As the option's value would be written; "1" or "0" for flags.
};

inline constexpr std::size_t kMaxConfigFileBytes = 1U << 20U;

// The entries of a file's text, in its order. `path` is for messages only.
Expected<std::vector<ConfigEntry>> ParseConfigText(std::string_view text, const std::string& path,
                                                   Program program);

Expected<std::vector<ConfigEntry>> ReadConfigFile(const std::string& path, Program program);

}  // namespace ddprun
