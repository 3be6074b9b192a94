#include "launcher/config/raw_values.h"

#include <fmt/format.h>

#include <utility>

#include "rendezvous/base/text.h"

namespace ddprun {

RawValues::RawValues(Program program) : program_(program) {
  for (const OptionSpec& spec : OptionTable()) {
    RawValue& value = at(spec.id);
    value.text = spec.kind == OptionKind::kFlag ? "0" : DefaultFor(spec, program);
    value.is_set = !value.text.empty();
  }
}

bool RawValues::IsExplicit(OptionId id) const {
  const ValueSource source = (*this)[id].source;
  return source == ValueSource::kConfigFile || source == ValueSource::kVariable ||
         source == ValueSource::kFlag;
}

void RawValues::SetFromConfigFile(OptionId id, std::string text, const std::string& path) {
  at(id) = {std::move(text), ValueSource::kConfigFile, path, true};
}

void RawValues::SetFromVariable(OptionId id, std::string text, const std::string& variable) {
  at(id) = {std::move(text), ValueSource::kVariable, variable, true};
}

void RawValues::SetFromFlag(OptionId id, const std::string& text) {
  const bool adds_up = id == OptionId::kRdzvConf || id == OptionId::kStoreConf;
  RawValue& value = at(id);
  const bool repeated = value.source == ValueSource::kFlag;
  if (adds_up && repeated && !Trim(value.text).empty()) {
    value.text += Trim(text).empty() ? "" : "," + text;
    return;
  }
  value = {text, ValueSource::kFlag, "", true};
}

void RawValues::Derive(OptionId id, std::string text, std::string origin) {
  at(id) = {std::move(text), ValueSource::kDerived, std::move(origin), true};
}

std::string RawValues::Describe(OptionId id) const {
  const OptionSpec& spec = SpecOf(id);
  const RawValue& value = (*this)[id];
  const bool flag = spec.kind == OptionKind::kFlag;
  switch (value.source) {
    case ValueSource::kVariable:
      return fmt::format("{}={}", value.origin, value.text);
    case ValueSource::kConfigFile:
      return fmt::format("{}: {}={}", value.origin, spec.name, value.text);
    default:
      return flag ? fmt::format("--{}", spec.name) : fmt::format("--{}={}", spec.name, value.text);
  }
}

}  // namespace ddprun
