#include "launcher/config/config_file.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <sstream>

#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

// Stands for CLI11's comment character, which it would also see inside quotes. Comments are gone
// before CLI11 reads the text, and a text with this byte is refused.
constexpr char kNoComment = '\x01';

tl::unexpected<Error> Bad(const std::string& path, std::size_t line, std::string_view what) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{}:{}: {}", path, line, what));
}

struct Line {
  std::string text;  // Without its comment, trimmed.
  int brackets = 0;  // Opened minus closed, outside quotes.
  bool open_quote = false;
};

Line ReadLine(std::string_view raw) {
  Line line;
  char quote = 0;
  for (const char c : raw) {
    if (quote == 0 && c == '#') {
      break;
    }
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '[' || c == ']')) {
      line.brackets += c == '[' ? 1 : -1;
    }
    line.text.push_back(c);
  }
  line.text = std::string(Trim(line.text));
  line.open_quote = quote != 0;
  return line;
}

// The file's text without comments and with each array on one line; fails for what CLI11 skips or
// misreads: a line that is no assignment, an unfinished string or array, a control character.
class Cleaner {
 public:
  explicit Cleaner(const std::string& path) : path_(path) {}

  Expected<std::string> Run(std::string_view text) {
    for (const std::string& raw : Split(text, '\n')) {
      ++number_;
      if (Expected<void> taken = Take(raw); !taken) {
        return tl::unexpected(taken.error());
      }
    }
    if (depth_ > 0) {
      return Bad(path_, array_line_, "this array has no end");
    }
    return std::move(clean_);
  }

 private:
  Expected<void> Take(const std::string& raw) {
    const bool control = std::any_of(raw.begin(), raw.end(), [](unsigned char c) {
      return (c < ' ' && c != '\t' && c != '\r') || c == 0x7f;
    });
    const Line line = ReadLine(raw);
    if (control) {
      return Bad(path_, number_, "control characters are not allowed");
    }
    if (line.open_quote) {
      return Bad(path_, number_, "this string has no end; a string stays on one line");
    }
    if (depth_ == 0 && !line.text.empty()) {
      if (Expected<void> shape = CheckShape(line.text); !shape) {
        return shape;
      }
      array_line_ = number_;
    }
    depth_ += line.brackets;
    if (depth_ < 0 || depth_ > 1) {
      return Bad(path_, number_, "brackets do not match; arrays cannot be nested");
    }
    clean_ += line.text + (depth_ == 0 ? "\n" : " ");
    return {};
  }

  Expected<void> CheckShape(const std::string& text) const {
    if (text.front() == '[') {
      const bool plain = text.size() > 2 && text.back() == ']' && text[1] != '[';
      return plain ? Expected<void>{}
                   : Bad(path_, number_, "expected a table name such as [rdzv-conf]");
    }
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || Trim(text.substr(0, equals)).empty()) {
      return Bad(path_, number_, fmt::format("expected name = value, not '{}'", text));
    }
    if (Trim(text.substr(equals + 1)).empty()) {
      return Bad(path_, number_,
                 fmt::format("'{}' has no value; write \"\" for an empty one", text));
    }
    return {};
  }

  const std::string& path_;
  std::string clean_;
  std::size_t number_ = 0;
  std::size_t array_line_ = 0;
  int depth_ = 0;
};

std::string Dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// Options that make no sense in a file: they end the program or name the file.
bool AllowedInFile(const OptionSpec& spec, Program program) {
  switch (spec.id) {
    case OptionId::kConfig:
    case OptionId::kHelp:
    case OptionId::kVersion:
    case OptionId::kPrintCompletion:
    case OptionId::kPrintConfig:
    case OptionId::kDryRun:
      return false;
    default:
      return ExistsFor(spec, program);
  }
}

Expected<const OptionSpec*> FindOption(const std::string& name, Program program) {
  std::vector<std::string> names;
  for (const OptionSpec& spec : OptionTable()) {
    if (!AllowedInFile(spec, program)) {
      continue;
    }
    if (spec.name == Dashed(name)) {
      return &spec;
    }
    names.emplace_back(spec.name);
  }
  const std::optional<std::string> nearest = NearestWord(Dashed(name), names);
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is not an option for a config file{}", name,
                          nearest ? fmt::format("; did you mean {}?", *nearest) : ""));
}

bool IsDuplicateFilter(const OptionSpec& spec) {
  return spec.id == OptionId::kDuplicateStdoutFilters ||
         spec.id == OptionId::kDuplicateStderrFilters;
}

// An array's items as one option value. A comma inside a filter is doubled, as on the command line.
std::string JoinItems(const OptionSpec& spec, const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    text += i == 0 ? "" : ",";
    for (const char c : items[i]) {
      text += c == ',' && items.size() > 1 && IsDuplicateFilter(spec) ? ",," : std::string(1, c);
    }
  }
  return text;
}

Expected<std::string> TextOf(const OptionSpec& spec, const std::vector<std::string>& inputs) {
  if (spec.kind == OptionKind::kList) {
    return JoinItems(spec, inputs);
  }
  if (inputs.size() != 1) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} takes one value; put text with blanks or commas in quotes, and give "
                    "the option once",
                    spec.name));
  }
  if (spec.kind != OptionKind::kFlag) {
    return inputs[0];
  }
  if (inputs[0] == "true" || inputs[0] == "1") {
    return "1";
  }
  if (inputs[0] == "false" || inputs[0] == "0") {
    return "0";
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{} = {}: a flag is true or false", spec.name, inputs[0]));
}

// A key of the table [rdzv-conf] is one more key=value of the option.
Expected<ConfigEntry> TableEntry(const CLI::ConfigItem& item) {
  const std::string table = Dashed(item.parents.front());
  const bool known = item.parents.size() == 1 && (table == "rdzv-conf" || table == "store-conf");
  if (!known) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("'{}': the tables are [rdzv-conf] and [store-conf]", item.fullname()));
  }
  return ConfigEntry{table == "rdzv-conf" ? OptionId::kRdzvConf : OptionId::kStoreConf,
                     item.name + "=" + Join(item.inputs, " ")};
}

Expected<ConfigEntry> EntryOf(const CLI::ConfigItem& item, Program program) {
  if (!item.parents.empty()) {
    return TableEntry(item);
  }
  const Expected<const OptionSpec*> spec = FindOption(item.name, program);
  if (!spec) {
    return tl::unexpected(spec.error());
  }
  Expected<std::string> text = TextOf(**spec, item.inputs);
  if (!text) {
    return tl::unexpected(text.error());
  }
  return ConfigEntry{(*spec)->id, *std::move(text)};
}

// Keys of one table belong to one option; any other option may be given once.
Expected<void> AddEntry(std::vector<ConfigEntry>& entries, ConfigEntry entry, bool from_table) {
  const auto same = std::find_if(entries.begin(), entries.end(),
                                 [&](const ConfigEntry& other) { return other.id == entry.id; });
  if (same == entries.end()) {
    entries.push_back(std::move(entry));
    return {};
  }
  if (!from_table) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is given twice", SpecOf(entry.id).name));
  }
  same->text += "," + entry.text;
  return {};
}

bool IsSectionMark(const CLI::ConfigItem& item) {
  return item.name == "++" || item.name == "--";
}

Expected<std::vector<CLI::ConfigItem>> ReadItems(const std::string& clean,
                                                 const std::string& path) {
  std::istringstream input(clean);
  CLI::ConfigTOML reader;
  reader.comment(kNoComment);
  try {
    return reader.from_config(input);
  } catch (const CLI::Error& error) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace

Expected<std::vector<ConfigEntry>> ParseConfigText(std::string_view text, const std::string& path,
                                                   Program program) {
  const Expected<std::string> clean = Cleaner(path).Run(text);
  if (!clean) {
    return tl::unexpected(clean.error());
  }
  const Expected<std::vector<CLI::ConfigItem>> items = ReadItems(*clean, path);
  if (!items) {
    return tl::unexpected(items.error());
  }
  std::vector<ConfigEntry> entries;
  for (const CLI::ConfigItem& item : *items) {
    if (IsSectionMark(item)) {
      continue;
    }
    Expected<ConfigEntry> entry = EntryOf(item, program);
    if (!entry) {
      return FailIn(path, entry.error());
    }
    if (Expected<void> added = AddEntry(entries, *std::move(entry), !item.parents.empty());
        !added) {
      return FailIn(path, added.error());
    }
  }
  return entries;
}

Expected<std::vector<ConfigEntry>> ReadConfigFile(const std::string& path, Program program) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Fail(errno, fmt::format("--config={}", path));
  }
  std::string text(kMaxConfigFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const int read_error = errno;
  if (file.bad()) {
    return Fail(read_error, fmt::format("--config={}", path));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxConfigFileBytes) {
    return Fail(ErrorCode::kResourceExhausted,
                fmt::format("--config={}: larger than {} bytes", path, kMaxConfigFileBytes));
  }
  return ParseConfigText(text, path, program);
}

}  // namespace ddprun
