#pragma once

// --rdzv-conf: its keys, their types and which back end reads them (torch 2.15.0:
// c10d_rendezvous_backend.py, dynamic_rendezvous.py, static_tcp_rendezvous.py).

#include <string>
#include <string_view>
#include <vector>

#include "launcher/config/launch_config.h"
#include "rendezvous/base/error.h"

namespace ddprun {

struct RdzvConf {
  RdzvConfigs configs;
  bool file_store = false;            // store_type=file was asked for.
  std::vector<std::string> warnings;  // Without the option's name: unknown and unused keys.
};

// `text` may hold a key several times; the later one wins. Values of keys that the back end does
// not read are not looked at, as in torch; a sentence says so.
Expected<RdzvConf> ParseRdzvConf(std::string_view text, RdzvBackend backend);

}  // namespace ddprun
