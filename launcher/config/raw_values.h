#pragma once

// RawValues: for every option the text that is in effect and where it came from, before any
// meaning. Precedence: command line, variable, config file, built-in default.

#include <array>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "launcher/config/argument_parser.h"
#include "launcher/config/config_file.h"
#include "launcher/config/environment.h"
#include "launcher/config/option_table.h"

namespace ddprun {

struct RawValue {
  std::string text;  // Flags: "1" or "0".
  ValueSource source = ValueSource::kDefault;
  std::string origin;   // Variable or file; what a derived value derives from.
  bool is_set = false;  // False: nobody gave a value and the built-in default is "unset".
};

class RawValues {
 public:
  explicit RawValues(Program program);

  Program program() const { return program_; }
  const RawValue& operator[](OptionId id) const { return values_[Index(id)]; }
  RawValue& at(OptionId id) { return values_[Index(id)]; }

  // Somebody gave this value on purpose: command line, variable or config file.
  bool IsExplicit(OptionId id) const;
  bool IsOn(OptionId id) const { return values_[Index(id)].text == "1"; }

  // Sets a value from a stronger source. List options given on the command line add up where
  // torch's would replace each other (--rdzv-conf, --store-conf).
  void SetFromConfigFile(OptionId id, std::string text, const std::string& path);
  void SetFromVariable(OptionId id, std::string text, const std::string& variable);
  void SetFromFlag(OptionId id, const std::string& text);
  // Another option decides this value; what was given is no longer in effect.
  void Derive(OptionId id, std::string text, std::string origin);

  // The value as its user wrote it: "--max-restarts=x", "PET_MAX_RESTARTS=x", "job.toml:
  // max-restarts=x".
  std::string Describe(OptionId id) const;

 private:
  static std::size_t Index(OptionId id) { return static_cast<std::size_t>(id); }

  Program program_;
  std::array<RawValue, static_cast<std::size_t>(OptionId::kEnd)> values_;
};

}  // namespace ddprun
