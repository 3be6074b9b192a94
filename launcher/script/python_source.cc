#include "launcher/script/python_source.h"

#include <algorithm>

namespace ddprun {
namespace {

bool IsOpening(std::string_view text) {
  return text == "(" || text == "[" || text == "{";
}
bool IsClosing(std::string_view text) {
  return text == ")" || text == "]" || text == "}";
}

// An option's name is short; what is longer is not read, so that reading one value many times stays
// cheap.
constexpr std::size_t kMaxValueTokens = 64;
constexpr std::size_t kMaxValueBytes = 4096;
constexpr int kMaxExtraBrackets = 16;

}  // namespace

PythonSource::PythonSource(std::string_view text) : text_(NormalizePythonSource(text)) {
  PythonTokens read = TokenizePython(text_);
  tokens_ = std::move(read.tokens);
  complete_ = read.complete && text.size() <= kMaxPythonSourceBytes;
  MatchBrackets();
  FindStatements();
  FindCalls();
  Outline();
}

std::string_view PythonSource::text(std::size_t index) const {
  return index < tokens_.size() ? tokens_[index].text : std::string_view();
}

bool PythonSource::IsName(std::size_t index) const {
  return index < tokens_.size() && tokens_[index].kind == PythonTokenKind::kName;
}

bool PythonSource::IsString(std::size_t index) const {
  return index < tokens_.size() && tokens_[index].kind == PythonTokenKind::kString;
}

bool PythonSource::IsOperator(std::size_t index, std::string_view text) const {
  return index < tokens_.size() && tokens_[index].kind == PythonTokenKind::kOperator &&
         tokens_[index].text == text;
}

// Brackets are matched by number, whatever their shape: only files that Python refuses differ.
void PythonSource::MatchBrackets() {
  partner_.assign(tokens_.size(), tokens_.size());
  enclosing_.assign(tokens_.size(), kNone);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const bool is_operator = tokens_[i].kind == PythonTokenKind::kOperator;
    if (is_operator && IsClosing(tokens_[i].text)) {
      partner_[i] = open.empty() ? kNone : open.back();
      if (!open.empty()) {
        partner_[open.back()] = i;
        open.pop_back();
      }
    }
    enclosing_[i] = open.empty() ? kNone : open.back();
    if (is_operator && IsOpening(tokens_[i].text)) {
      open.push_back(i);
    }
  }
}

// Logical lines, and the parts of a line between semicolons.
void PythonSource::FindStatements() {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const bool semicolon = enclosing_[i] == kNone && IsOperator(i, ";");
    if (tokens_[i].kind == PythonTokenKind::kNewline || semicolon) {
      if (i > begin) {
        statements_.push_back(TokenRange{begin, i});
      }
      begin = i + 1;
    }
  }
}

void PythonSource::FindCalls() {
  for (std::size_t i = 1; i < tokens_.size(); ++i) {
    const bool defined = i > 1 && (text(i - 2) == "def" || text(i - 2) == "class");
    if (IsOperator(i, "(") && IsName(i - 1) && !defined) {
      calls_.push_back(PythonCall{i - 1, i});
    }
  }
}

std::vector<TokenRange> PythonSource::Items(std::size_t opener) const {
  const std::size_t closer = Closer(opener);
  std::vector<TokenRange> items;
  TokenRange item{opener + 1, opener + 1};
  for (std::size_t i = opener + 1; i < closer; ++i) {
    if (IsOperator(i, ",")) {
      items.push_back(item);
      item = TokenRange{i + 1, i + 1};
      continue;
    }
    if (tokens_[i].kind == PythonTokenKind::kOperator && IsOpening(tokens_[i].text)) {
      i = std::min(Closer(i), closer - 1);
    }
    item.end = i + 1;
  }
  if (!item.empty()) {
    items.push_back(item);
  }
  return items;
}

std::vector<PythonArgument> PythonSource::Arguments(std::size_t opener) const {
  std::vector<PythonArgument> arguments;
  for (const TokenRange item : Items(opener)) {
    PythonArgument argument{{}, false, item};
    if (item.size() > 2 && IsName(item.begin) && IsOperator(item.begin + 1, "=")) {
      argument.keyword = text(item.begin);
      argument.value.begin += 2;
    } else if (IsOperator(item.begin, "*")) {
      argument.unpacked = true;
      ++argument.value.begin;
    }
    if (!argument.value.empty() && !IsOperator(item.begin, "**")) {
      arguments.push_back(argument);
    }
  }
  return arguments;
}

TokenRange PythonSource::WithoutBrackets(TokenRange range) const {
  for (int level = 0; level < kMaxExtraBrackets; ++level) {
    if (range.size() < 2 || !IsOperator(range.begin, "(") || Closer(range.begin) != range.end - 1) {
      break;
    }
    ++range.begin;
    --range.end;
  }
  return range;
}

// Strings side by side or with + between them.
std::optional<std::string> PythonSource::JoinStrings(TokenRange range,
                                                     std::size_t max_bytes) const {
  std::string joined;
  bool wants_string = true;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    if (IsString(i)) {
      if (tokens_[i].text.size() > max_bytes) {
        return std::nullopt;
      }
      const PythonString part = DecodePythonString(tokens_[i].text);
      if (part.bytes || part.has_fields) {
        return std::nullopt;
      }
      joined += part.value;
      wants_string = false;
    } else if (IsOperator(i, "+") && !wants_string) {
      wants_string = true;
    } else {
      return std::nullopt;
    }
  }
  return wants_string ? std::nullopt : std::optional<std::string>(std::move(joined));
}

void PythonSource::AddStringValue(TokenRange range, std::vector<std::string>& values) const {
  range = WithoutBrackets(range);
  if (range.size() == 1 && IsName(range.begin)) {
    const std::optional<TokenRange> assigned = OnlyAssignment(text(range.begin));
    range = assigned ? WithoutBrackets(*assigned) : TokenRange{};
  }
  const bool is_short = range.size() <= kMaxValueTokens;
  if (auto value = is_short ? JoinStrings(range, kMaxValueBytes) : std::nullopt) {
    values.push_back(std::move(*value));
  }
}

std::vector<std::string> PythonSource::StringValues(TokenRange range) const {
  range = WithoutBrackets(range);
  std::vector<std::string> values;
  const std::size_t condition = FindAtDepth(range, "if");
  if (condition == kNone) {
    AddStringValue(range, values);
    return values;
  }
  const std::size_t otherwise = FindAtDepth(TokenRange{condition, range.end}, "else");
  AddStringValue(TokenRange{range.begin, condition}, values);
  if (otherwise != kNone) {
    AddStringValue(TokenRange{otherwise + 1, range.end}, values);
  }
  return values;
}

std::string_view PythonSource::Receiver(std::size_t name) const {
  const bool chained = name >= 2 && IsOperator(name - 1, ".") && IsName(name - 2);
  return chained ? text(name - 2) : std::string_view();
}

// The first token with this text outside the brackets that open in the range.
std::size_t PythonSource::FindAtDepth(TokenRange range, std::string_view wanted) const {
  for (std::size_t i = range.begin; i < range.end; ++i) {
    if (tokens_[i].kind != PythonTokenKind::kString && tokens_[i].text == wanted) {
      return i;
    }
    if (tokens_[i].kind == PythonTokenKind::kOperator && IsOpening(tokens_[i].text)) {
      i = Closer(i);
    }
  }
  return kNone;
}

std::optional<TokenRange> PythonSource::OnlyAssignment(std::string_view name) const {
  const std::vector<TokenRange>& all = Assignments(name);
  return all.size() == 1 ? std::optional<TokenRange>(all.front()) : std::nullopt;
}

const std::vector<TokenRange>& PythonSource::Assignments(std::string_view name) const {
  static const std::vector<TokenRange> kNothing;
  const auto found = assignments_.find(name);
  return found == assignments_.end() ? kNothing : found->second;
}

std::optional<std::string> PythonSource::docstring() const {
  return statements_.empty() ? std::nullopt
                             : JoinStrings(statements_.front(), kMaxPythonSourceBytes);
}

std::optional<std::string> PythonSource::LongString(TokenRange range) const {
  range = WithoutBrackets(range);
  if (range.size() == 1 && IsName(range.begin)) {
    const std::optional<TokenRange> assigned = OnlyAssignment(text(range.begin));
    range = assigned ? WithoutBrackets(*assigned) : TokenRange{};
  }
  return JoinStrings(range, kMaxPythonSourceBytes);
}

void PythonSource::Outline() {
  for (const TokenRange statement : statements_) {
    ReadStatement(statement);
  }
}

void PythonSource::ReadStatement(TokenRange statement) {
  const std::size_t first = statement.begin;
  if (open_class_ && tokens_[first].indent <= class_indent_) {
    open_class_.reset();
  }
  if (open_class_ && field_indent_ == 0) {
    field_indent_ = tokens_[first].indent;
  }
  if (IsOperator(first, "@")) {
    open_decorators_.push_back(TokenRange{first + 1, statement.end});
    return;
  }
  const bool async = text(first) == "async";
  if (text(first) == "def" || (async && text(first + 1) == "def")) {
    ReadFunction(statement, async ? first + 1 : first);
  } else if (text(first) == "class") {
    ReadClass(statement);
  } else if (text(first) == "import" || text(first) == "from") {
    ReadImport(statement);
  } else {
    ReadField(statement);
    ReadAssignment(statement);
  }
  open_decorators_.clear();
}

// `import a.b as c, d` and `from a.b import c`.
void PythonSource::ReadImport(TokenRange statement) {
  const bool from = text(statement.begin) == "from";
  bool wanted = true;
  for (std::size_t i = statement.begin + 1; i < statement.end; ++i) {
    if (wanted && IsName(i)) {
      imports_.insert(text(i));
    }
    wanted = !from && IsOperator(i, ",");
  }
}

// `name = value`, `name: type = value` and `a = b = value`; what is unpacked is not followed.
void PythonSource::ReadAssignment(TokenRange statement) {
  std::size_t at = statement.begin;
  std::vector<std::string_view> names;
  while (IsName(at)) {
    std::size_t equals = at + 1;
    if (IsOperator(equals, ":")) {
      equals = FindAtDepth(TokenRange{equals, statement.end}, "=");
    }
    if (equals == kNone || equals >= statement.end || !IsOperator(equals, "=")) {
      break;
    }
    names.push_back(text(at));
    at = equals + 1;
  }
  // Of `a = b` the b is the value: only a name with an = behind it was taken.
  for (const std::string_view name : names) {
    assignments_[name].push_back(TokenRange{at, statement.end});
  }
}

PythonParameter PythonSource::ReadParameter(TokenRange range) const {
  PythonParameter parameter{text(range.begin), tokens_[range.begin].line, {}, {}};
  const std::size_t equals = FindAtDepth(range, "=");
  const std::size_t end = equals == kNone ? range.end : equals;
  if (IsOperator(range.begin + 1, ":") && range.begin + 2 <= end) {
    parameter.annotation = TokenRange{range.begin + 2, end};
  }
  if (equals != kNone) {
    parameter.default_value = TokenRange{equals + 1, range.end};
  }
  return parameter;
}

void PythonSource::ReadFunction(TokenRange statement, std::size_t def) {
  PythonFunction function{text(def + 1), std::move(open_decorators_), {}};
  open_decorators_.clear();
  const std::size_t opener = FindAtDepth(TokenRange{def, statement.end}, "(");
  if (opener != kNone) {
    for (const TokenRange item : Items(opener)) {
      if (IsName(item.begin)) {
        function.parameters.push_back(ReadParameter(item));
      }
    }
  }
  functions_.push_back(std::move(function));
}

void PythonSource::ReadClass(TokenRange statement) {
  const std::size_t name = statement.begin + 1;
  PythonClass read{text(name), std::move(open_decorators_), {}, {}};
  open_decorators_.clear();
  if (IsOperator(name + 1, "(")) {
    read.bases = TokenRange{name + 2, std::min(Closer(name + 1), statement.end)};
  }
  classes_.push_back(std::move(read));
  open_class_ = classes_.size() - 1;
  class_indent_ = tokens_[statement.begin].indent;
  field_indent_ = 0;
}

// The first statement of a class body sets the indentation of its fields; deeper ones belong to
// its methods.
void PythonSource::ReadField(TokenRange statement) {
  if (open_class_ && tokens_[statement.begin].indent == field_indent_ && IsName(statement.begin) &&
      IsOperator(statement.begin + 1, ":")) {
    classes_[*open_class_].fields.push_back(ReadParameter(statement));
  }
}

}  // namespace ddprun
