#include "launcher/script/python_tokens.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace ddprun {
namespace {

using Kind = PythonTokenKind;

std::vector<std::string> Texts(std::string_view source) {
  std::vector<std::string> texts;
  for (const PythonToken& token : TokenizePython(source).tokens) {
    texts.emplace_back(token.kind == Kind::kNewline ? "<nl>" : token.text);
  }
  return texts;
}

using Words = std::vector<std::string>;

TEST_CASE("names, numbers, operators and logical lines are told apart") {
  CHECK(Texts("a.b(1, x=2.5e-3)\n") ==
        Words{"a", ".", "b", "(", "1", ",", "x", "=", "2.5e-3", ")", "<nl>"});
  CHECK(Texts("a:=b!=c**d->e...") ==
        Words{"a", ":=", "b", "!=", "c", "**", "d", "->", "e", "...", "<nl>"});
  CHECK(Texts("x += .5; y=0x_ff") == Words{"x", "+=", ".5", ";", "y", "=", "0x_ff", "<nl>"});
}

TEST_CASE("a new line ends a statement only outside brackets and without a backslash") {
  CHECK(Texts("f(\n1,\n\n# x\n2)\ny") == Words{"f", "(", "1", ",", "2", ")", "<nl>", "y", "<nl>"});
  CHECK(Texts("a \\\n b\nc") == Words{"a", "b", "<nl>", "c", "<nl>"});
  CHECK(Texts("a \\\r\n b\r\nc\rd") == Words{"a", "b", "<nl>", "c", "<nl>", "d", "<nl>"});
  CHECK(Texts("\n\n# only\n  \n").empty());
}

TEST_CASE("lines are counted through every kind of line end and inside strings") {
  const std::string source = "a\r\nb\rc\n'''x\n\r\ny''' d\n(\n e\\\n)\nf";
  std::vector<std::uint32_t> lines;
  for (const PythonToken& token : TokenizePython(source).tokens) {
    if (token.kind == Kind::kName) {
      lines.push_back(token.line);
    }
  }
  CHECK(lines == std::vector<std::uint32_t>{1, 2, 3, 6, 8, 10});
}

TEST_CASE("the indentation is that of the logical line") {
  const auto tokens = TokenizePython("if x:\n    f(\n  y)\n\tz\n").tokens;
  std::vector<std::uint16_t> indents;
  for (const PythonToken& token : tokens) {
    if (token.kind == Kind::kName) {
      indents.push_back(token.indent);
    }
  }
  CHECK(indents == std::vector<std::uint16_t>{0, 0, 4, 4, 8});
}

TEST_CASE("every prefix and way of quoting makes one string token") {
  for (const char* literal : {"'a'",
                              "\"a\"",
                              "'''a'b''c'''",
                              "\"\"\"a\n\"b\"\"\"",
                              "r'\\'",
                              "R'\\''",
                              "b'x'",
                              "Rb'x'",
                              "bR'x'",
                              "u'x'",
                              "U\"x\"",
                              "f'x'",
                              "fR'x'",
                              "rF'{x}'",
                              "t'{x}'",
                              "Tr'x'",
                              "'\\''",
                              "'\\\\'",
                              "'a\\\nb'",
                              "'a\\\r\nb'",
                              "''",
                              "\"\"\"\"\"\"",
                              "f'{a!r:>{b}}'",
                              "f'{{'",
                              "f'{x:{y}}}}'",
                              "f'{d[\"k\"]}'",
                              "f'{d['k']}'",
                              "f'{f'{f'{1}'}'}'",
                              "f'{ {1: 2}[1] }'",
                              "f'''{\n1\n}'''",
                              "f'\\N{DASH}'",
                              "f'\\{x}'",
                              "f'{x:%H:%M}'",
                              "f\"{x!r}{'}'}\"",
                              "f'''{x:'>10}'''",
                              "f'{(lambda x: 1)}'",
                              "rf'{x}\\'"}) {
    CAPTURE(literal);
    // The last: in a raw string a backslash keeps the quote, so the text runs to the end of line.
    CHECK(Texts(literal).size() == 2);
    CHECK(Texts(literal).front() == literal);
  }
  CHECK(Texts("rbx'a'") == Words{"rbx", "'a'", "<nl>"});
  CHECK(Texts("bu'a'") == Words{"bu", "'a'", "<nl>"});
  CHECK(Texts("'a''b'") == Words{"'a'", "'b'", "<nl>"});
}

TEST_CASE("unterminated input ends where it must and never fails") {
  CHECK(Texts("'abc\nx") == Words{"'abc", "<nl>", "x", "<nl>"});
  CHECK(Texts("'''abc\nx") == Words{"'''abc\nx", "<nl>"});
  CHECK(Texts("f'{x\ny") == Words{"f'{x", "<nl>", "y", "<nl>"});
  CHECK(Texts("f'{") == Words{"f'{", "<nl>"});
  CHECK(Texts("f(((\nx") == Words{"f", "(", "(", "(", "x", "<nl>"});
  CHECK(Texts(")]}\nx") == Words{")", "]", "}", "<nl>", "x", "<nl>"});
  CHECK(Texts("\\") == Words{"\\", "<nl>"});
  CHECK(Texts("'\\").size() == 2);
  CHECK(Texts(std::string_view("a\0b", 3)).size() == 4);
}

TEST_CASE("after one f-string that cannot be read the others still end at their quote") {
  CHECK(Texts("f'{'\nf'{a}'\nb") == Words{"f'{'", "<nl>", "f'{a}'", "<nl>", "b", "<nl>"});
}

TEST_CASE("strings are decoded as Python decodes them") {
  const auto value = [](std::string_view literal) { return DecodePythonString(literal).value; };
  CHECK(value("'a'") == "a");
  CHECK(value("'''a\nb'''") == "a\nb");
  CHECK(value("r'\\n'") == "\\n");
  CHECK(value("'\\n\\t\\\\\\'\\x2d\\55\\u002d\\U0000002d'") == "\n\t\\'----");
  CHECK(value("'\\u00e9\\u20ac\\U0001F600'") == "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK(value("'a\\\nb'") == "ab");
  CHECK(value("'\\q\\xZ\\N{DASH}'") == "\\q\\xZ\\N{DASH}");
  CHECK(value("f'{{a}}'") == "{a}");
  CHECK_FALSE(DecodePythonString("f'{{a}}'").has_fields);
  CHECK(DecodePythonString("f'{a}'").has_fields);
  CHECK_FALSE(DecodePythonString("'{a}'").has_fields);
  CHECK(DecodePythonString("Rb'x'").bytes);
  CHECK(value("'abc") == "abc");
  CHECK(value("'''abc") == "abc");
  CHECK(value("'").empty());
  CHECK(value("").empty());
}

TEST_CASE("a byte order mark is dropped and double-byte characters hide their second byte") {
  CHECK(NormalizePythonSource("\xEF\xBB\xBFx") == "x");
  // Shift JIS 0x95 0x5C: a character whose second byte is a backslash.
  const std::string text = "# -*- coding: shift_jis -*-\na = '\x95\x5c'\nb = 1\n";
  CHECK(Texts(NormalizePythonSource(text)).size() == 8);
  CHECK(Texts(text) != Texts(NormalizePythonSource(text)));
  CHECK(NormalizePythonSource("#!/usr/bin/python\n# vim: set fileencoding=GBK :\n'\x81\x5c'") ==
        "#!/usr/bin/python\n# vim: set fileencoding=GBK :\n'\x80\x80'");
  CHECK(NormalizePythonSource("# coding: latin-1\n'\xe9\\n'") == "# coding: latin-1\n'\xe9\\n'");
  CHECK(NormalizePythonSource("\n\n# coding: gbk\n'\x81\x5c'") == "\n\n# coding: gbk\n'\x81\x5c'");
}

TEST_CASE("more than the limit of bytes or tokens is not read") {
  CHECK(NormalizePythonSource(std::string(kMaxPythonSourceBytes + 9, 'x')).size() ==
        kMaxPythonSourceBytes);
  const PythonTokens tokens = TokenizePython(std::string(kMaxPythonTokens + 9, ','));
  CHECK_FALSE(tokens.complete);
  CHECK(tokens.tokens.size() <= kMaxPythonTokens + 1);
  CHECK(TokenizePython(std::string(kMaxPythonTokens - 9, ',')).complete);
}

}  // namespace
}  // namespace ddprun
