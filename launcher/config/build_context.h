#pragma once

// What the steps that build a LaunchConfig share: the values as text, the configuration in the
// making, and the two ways of speaking to the user. Internal to this folder.

#include <string>
#include <string_view>

#include "launcher/config/environment.h"
#include "launcher/config/launch_config.h"
#include "launcher/config/raw_values.h"
#include "rendezvous/base/error.h"

namespace ddprun {

struct BuildContext {
  RawValues& values;
  LaunchConfig& config;
  const Environment& environment;

  const std::string& Text(OptionId id) const { return values[id].text; }

  // "<option as written>: <sentence>".
  tl::unexpected<Error> Bad(OptionId id, std::string_view sentence) const;
  void Warn(OptionId id, std::string_view sentence) const;

  // One warning if somebody gave the option and a value other than what takes effect.
  void WarnUnused(OptionId id, std::string_view effective, std::string_view why) const;

  // Reads one option by its grammar (value_parsers.h) into a field.
  template <typename Field, typename Parser>
  Expected<void> Read(OptionId id, Field& field, Parser parse) const {
    auto parsed = parse(Text(id));
    if (!parsed) {
      return Bad(id, parsed.error().message);
    }
    field = *std::move(parsed);
    return {};
  }

  // An option whose work belongs to a later version: "--numa-binding=node: ...; remove the option".
  tl::unexpected<Error> NotYet(OptionId id, std::string_view what) const;
};

// Which rendezvous this is, and every value of it (spec sections 1.5, 1.6, 1.10, 5.3).
Expected<void> DecideStandalone(BuildContext& context);
Expected<void> BuildNodes(BuildContext& context);
Expected<void> BuildRendezvous(BuildContext& context);

// What is checked and understood but not there yet; last, so that other errors are named first.
Expected<void> CheckPartOfThisVersion(const BuildContext& context);

// LOGLEVEL and the other variables that are no options (spec section 2.5).
Expected<void> BuildLauncherVariables(BuildContext& context);

}  // namespace ddprun
