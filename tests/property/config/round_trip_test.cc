// Round trips: what is put together from parts is taken apart into the same parts.

#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>

#include "launcher/config/argument_parser.h"
#include "launcher/config/command_line.h"
#include "launcher/config/config_file.h"
#include "launcher/config/value_parsers.h"
#include "rendezvous/base/text.h"
#include "tests/support/catch.h"

namespace ddprun {
namespace {

using Words = std::vector<std::string>;

rc::Gen<std::string> Text(const std::string& letters) {
  return rc::gen::container<std::string>(rc::gen::elementOf(letters));
}

rc::Gen<std::string> SomeText(const std::string& letters) {
  return rc::gen::nonEmpty(Text(letters));
}

// Any option of `ddprun` that takes a value or is a flag.
rc::Gen<const OptionSpec*> AnyOption() {
  std::vector<const OptionSpec*> specs;
  for (const OptionSpec& spec : OptionTable()) {
    if (ExistsFor(spec, Program::kDdprun)) {
      specs.push_back(&spec);
    }
  }
  return rc::gen::elementOf(specs);
}

TEST_CASE("options written in any form come back, and the script's words untouched") {
  CHECK(rc::check([] {
    Words words;
    std::vector<std::pair<OptionId, std::string>> expected;
    const auto count = *rc::gen::inRange(0, 6);
    for (int i = 0; i < count; ++i) {
      const OptionSpec& spec = **AnyOption();
      const std::string spelling = *rc::gen::elementOf(LongSpellings(spec));
      const std::string value = spec.kind == OptionKind::kFlag ? "" : *Text("ab0=,:-_ /");
      expected.emplace_back(spec.id, value);
      const bool separate = *rc::gen::arbitrary<bool>() && !value.starts_with('-');
      if (spec.kind == OptionKind::kFlag) {
        words.push_back(spelling);
      } else if (separate) {
        words.insert(words.end(), {spelling, value});
      } else {
        words.push_back(spelling + "=" + value);
      }
    }
    const Words tail = *rc::gen::container<Words>(Text("ab-= "));
    words.emplace_back("s.py");
    // A first `--` would be the one that is dropped.
    words.emplace_back("first");
    words.insert(words.end(), tail.begin(), tail.end());

    const ParsedArguments parsed = ParseArguments(words, Program::kDdprun);
    RC_ASSERT(!parsed.error.has_value());
    RC_ASSERT(parsed.script == "s.py");
    RC_ASSERT(Words(parsed.script_arguments.begin() + 1, parsed.script_arguments.end()) == tail);
    RC_ASSERT(parsed.uses.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      RC_ASSERT(parsed.uses[i].id == expected[i].first);
      RC_ASSERT(parsed.uses[i].value == expected[i].second);
    }
  }));
}

TEST_CASE("a prefix means an option exactly when the option's full name does") {
  CHECK(rc::check([] {
    const OptionSpec& spec = **AnyOption();
    const std::string spelling = *rc::gen::elementOf(LongSpellings(spec));
    const auto length = *rc::gen::inRange<std::size_t>(3, spelling.size() + 1);
    const std::string value = spec.kind == OptionKind::kFlag ? "" : "=v";
    const ParsedArguments parsed =
        ParseArguments({spelling.substr(0, length) + value, "s"}, Program::kDdprun);
    // Ambiguous, another option (torchrun's wins over ours), or this one; never unknown.
    RC_ASSERT(parsed.unrecognized.empty());
    if (length == spelling.size()) {
      RC_ASSERT(parsed.uses.size() == 1U);
      RC_ASSERT(parsed.uses[0].id == spec.id);
    }
  }));
}

TEST_CASE("std selections survive formatting") {
  CHECK(rc::check([] {
    StreamSelection selection;
    const auto ranks =
        *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(0, 10));
    for (const std::uint32_t rank : ranks) {
      selection.by_local_rank[rank] = *rc::gen::inRange<std::uint8_t>(0, 4);
    }
    if (ranks.empty()) {
      selection.everywhere = *rc::gen::inRange<std::uint8_t>(0, 4);
    }
    RC_ASSERT(*ParseStreamSelection(FormatStreamSelection(selection)) == selection);
  }));
}

TEST_CASE("filters survive formatting unless one begins with a comma") {
  CHECK(rc::check([] {
    Words filters = *rc::gen::nonEmpty(rc::gen::container<Words>(Text("ab, ")));
    for (std::string& filter : filters) {
      filter = filter.starts_with(',') ? "x" + filter : filter;
    }
    // An empty element between two others would itself read as a doubled comma.
    filters.erase(std::remove(filters.begin(), filters.end(), ""), filters.end());
    RC_PRE(!filters.empty());
    RC_ASSERT(ParseFilterList(FormatFilterList(filters)) == filters);
  }));
}

TEST_CASE("endpoints survive formatting") {
  CHECK(rc::check([] {
    const bool v6 = *rc::gen::arbitrary<bool>();
    const std::string host = v6 ? "fe80::" + *SomeText("0123abc") : *SomeText("abc012.-_");
    const auto port = *rc::gen::inRange<std::uint16_t>(0, 65535);
    const std::string written = v6 ? "[" + host + "]" : host;
    RC_ASSERT(*ParseEndpoint(fmt::format(" {}:{}", written, port), 1) == (Endpoint{host, port}));
    RC_ASSERT(*ParseEndpoint(written, 17) == (Endpoint{host, 17}));
  }));
}

TEST_CASE("key-value lists survive joining") {
  CHECK(rc::check([] {
    const auto count = *rc::gen::inRange(0, 5);
    std::vector<std::string> pieces;
    std::vector<KeyValue> pairs;
    for (int i = 0; i < count; ++i) {
      KeyValue pair{*SomeText("abc_"), *SomeText("01=a.")};
      pieces.push_back(fmt::format(" {} = {} ", pair.key, pair.value));
      pairs.push_back(std::move(pair));
    }
    const auto parsed = *ParseKeyValues(Join(pieces, ","));
    RC_ASSERT(parsed.size() == pairs.size());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      RC_ASSERT(parsed[i].key == pairs[i].key);
      RC_ASSERT(parsed[i].value == pairs[i].value);
    }
  }));
}

TEST_CASE("a printed configuration reads back as the same values") {
  CHECK(rc::check([] {
    const std::string role = *Text("ab #=[],'$ {}");
    const std::string text = *SomeText("ab #=[],\"$ ");
    const auto restarts = *rc::gen::inRange(0, 1000);
    const Words words{"--role=" + role,
                      "--log-line-prefix-template=" + text,
                      "-t3",
                      fmt::format("--max-restarts={}", restarts),
                      "--rdzv-backend=c10d",
                      "s.py"};
    const ParseOutcome outcome = ParseCommandLine("ddprun", words, {});
    const std::string printed = PrintConfig(std::get<LaunchConfig>(outcome));
    const auto entries = ParseConfigText(printed, "f", Program::kDdprun);
    RC_ASSERT(entries.has_value());
    const auto find = [&entries](OptionId id) {
      for (const ConfigEntry& entry : *entries) {
        if (entry.id == id) {
          return entry.text;
        }
      }
      return std::string("absent");
    };
    RC_ASSERT(entries->size() == 5U);
    RC_ASSERT(find(OptionId::kRole) == role);
    RC_ASSERT(find(OptionId::kLogLinePrefixTemplate) == text);
    RC_ASSERT(find(OptionId::kMaxRestarts) == std::to_string(restarts));
  }));
}

}  // namespace
}  // namespace ddprun
