#pragma once

// JSON as Python's json.dumps writes it by default. Internal to this folder: nlohmann's header is
// heavy.

#include <nlohmann/json.hpp>
#include <string>

#include "agent/core/json_text.h"

namespace ddprun {

// Keeps the order of members, as Python does.
using OrderedJson = nlohmann::ordered_json;

// ASCII only, blanks after separators, one line; bytes that are no UTF-8 become U+FFFD.
inline std::string DumpAsPython(const OrderedJson& value) {
  return WithPythonSpacing(value.dump(-1, ' ', true, OrderedJson::error_handler_t::replace));
}

}  // namespace ddprun
