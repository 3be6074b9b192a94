#pragma once

// PythonSource: a Python file as tokens with matched brackets, and an outline of what it assigns,
// calls and defines. It is no parser: it reads the shapes in which declarations are written and
// skips everything else. Pure, linear in the input, immutable once made.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/script/python_tokens.h"

namespace ddprun {

// Tokens [begin, end).
struct TokenRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  bool empty() const { return begin >= end; }
  std::size_t size() const { return empty() ? 0 : end - begin; }
};

// One argument of a call.
struct PythonArgument {
  std::string_view keyword;  // Empty for a positional one.
  bool unpacked = false;     // `*value`; a `**value` is left out.
  TokenRange value;
};

// `name(...)`, where `name` may end a chain such as `a.b().name`.
struct PythonCall {
  std::size_t name = 0;    // Token of the last name.
  std::size_t opener = 0;  // Its bracket.
};

struct PythonParameter {
  std::string_view name;
  std::uint32_t line = 0;
  TokenRange annotation;
  TokenRange default_value;  // Empty: there is none.
};

struct PythonFunction {
  std::string_view name;
  std::vector<TokenRange> decorators;  // Behind the @.
  std::vector<PythonParameter> parameters;
};

struct PythonClass {
  std::string_view name;
  std::vector<TokenRange> decorators;
  TokenRange bases;                     // Between its brackets.
  std::vector<PythonParameter> fields;  // `name: annotation [= value]` directly in its body.
};

class PythonSource {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  explicit PythonSource(std::string_view text);
  PythonSource(const PythonSource&) = delete;
  PythonSource& operator=(const PythonSource&) = delete;

  // False: the file is larger than the limits, and only its beginning was read.
  bool complete() const { return complete_; }
  const std::vector<PythonToken>& tokens() const { return tokens_; }
  std::size_t size() const { return tokens_.size(); }

  // The token's text; empty behind either end.
  std::string_view text(std::size_t index) const;
  bool IsName(std::size_t index) const;
  bool IsString(std::size_t index) const;
  bool IsOperator(std::size_t index, std::string_view text) const;

  // Of an opening bracket: its partner, or size().
  std::size_t Closer(std::size_t opener) const { return partner_[opener]; }
  // Of a closing bracket: its partner, or kNone.
  std::size_t OpenerOf(std::size_t closer) const { return partner_[closer]; }
  // The innermost open bracket around a token, or kNone.
  std::size_t Enclosing(std::size_t index) const { return enclosing_[index]; }

  // The parts between the commas of a bracket pair.
  std::vector<TokenRange> Items(std::size_t opener) const;
  std::vector<PythonArgument> Arguments(std::size_t opener) const;

  // The values that an expression may have, if they can be read: a string (adjacent ones and `+`
  // are joined), a name that is assigned such a string exactly once, `a if c else b`.
  std::vector<std::string> StringValues(TokenRange range) const;

  // The same for one long text; reads no conditional.
  std::optional<std::string> LongString(TokenRange range) const;

  // The name before `.name` of a chain: "parser" in `parser.add_argument`; empty if it is no name.
  std::string_view Receiver(std::size_t name) const;

  // The only expression assigned to a name in the file.
  std::optional<TokenRange> OnlyAssignment(std::string_view name) const;
  // All of them, in order.
  const std::vector<TokenRange>& Assignments(std::string_view name) const;

  const std::vector<TokenRange>& statements() const { return statements_; }
  const std::vector<PythonCall>& calls() const { return calls_; }
  const std::vector<PythonFunction>& functions() const { return functions_; }
  const std::vector<PythonClass>& classes() const { return classes_; }
  // The top-level names of the packages and modules that the file imports.
  bool Imports(std::string_view package) const { return imports_.count(package) != 0; }
  // The string that is the file's first statement.
  std::optional<std::string> docstring() const;

 private:
  void MatchBrackets();
  void FindStatements();
  void FindCalls();
  void Outline();
  void ReadStatement(TokenRange statement);
  void ReadImport(TokenRange statement);
  void ReadAssignment(TokenRange statement);
  void ReadFunction(TokenRange statement, std::size_t def);
  void ReadClass(TokenRange statement);
  void ReadField(TokenRange statement);
  PythonParameter ReadParameter(TokenRange range) const;
  std::size_t FindAtDepth(TokenRange range, std::string_view text) const;
  TokenRange WithoutBrackets(TokenRange range) const;
  std::optional<std::string> JoinStrings(TokenRange range, std::size_t max_bytes) const;
  void AddStringValue(TokenRange range, std::vector<std::string>& values) const;

  std::string text_;
  std::vector<PythonToken> tokens_;
  bool complete_ = true;
  std::vector<std::size_t> partner_;
  std::vector<std::size_t> enclosing_;
  std::vector<TokenRange> statements_;
  std::vector<PythonCall> calls_;
  std::map<std::string_view, std::vector<TokenRange>> assignments_;
  std::vector<PythonFunction> functions_;
  std::vector<PythonClass> classes_;
  std::set<std::string_view> imports_;
  std::vector<TokenRange> open_decorators_;
  // The class whose body is being read, by the indentation of its fields (0: not seen yet).
  std::optional<std::size_t> open_class_;
  std::uint16_t class_indent_ = 0;
  std::uint16_t field_indent_ = 0;
};

}  // namespace ddprun
