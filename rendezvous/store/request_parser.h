#pragma once

// RequestParser: finds the requests in the byte stream of one connection. Pure.
//
// It tells the dialects apart by the first bytes, then reads message after message. It is
// incremental (a message may arrive cut anywhere, and looking again costs only the new bytes),
// consumes exactly the bytes of each message, holds no bytes itself, and never trusts a claimed
// length with memory: it compares it with the limits and waits for the bytes to come.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/store/protocol.h"

namespace ddprun {

enum class ParseResult : std::uint8_t {
  kNeedMore,  // The message is not complete; see missing().
  kRequest,   // request() is valid; consume request().size bytes before the next call.
  kRefused,   // refusal() says why; the connection is beyond repair and must be closed.
};

struct ParserSettings {
  DialectMode mode = DialectMode::kAuto;
  bool legacy_is_2_1 = false;  // Read opcode 8 of a legacy client as APPEND, not as DELETE_KEY.
  ParseLimits limits;
};

class RequestParser {
 public:
  explicit RequestParser(const ParserSettings& settings);

  // `bytes` starts at the current message: the same bytes as in the last call and perhaps more, or,
  // after kRequest, those behind the consumed message.
  ParseResult Next(std::string_view bytes);

  Request& request() { return request_; }
  const std::string& refusal() const { return refusal_; }
  Dialect dialect() const { return dialect_; }

  // The opcode of the current or last message; nullopt before the first byte.
  std::optional<std::uint8_t> opcode() const { return opcode_; }

  // After kNeedMore: at least so many bytes are still to come before the message can be complete.
  std::size_t missing() const { return missing_; }

 private:
  // Where a field of the current message lies.
  struct Span {
    std::size_t begin = 0;
    std::size_t size = 0;
  };

  ParseResult DetectDialect(std::string_view bytes);
  ParseResult JudgeHello(std::string_view bytes);
  ParseResult BeginMessage(std::string_view bytes);
  std::optional<Operation> OperationOf(std::uint8_t opcode);
  std::optional<Operation> LegacyOperationOf(std::uint8_t opcode);
  ParseResult ReadFields(std::string_view bytes);
  ParseResult ReadField(char kind, std::string_view bytes);
  ParseResult ReadString(std::string_view bytes, char kind, Span& field);
  ParseResult ReadNumber(std::string_view bytes, std::size_t width);
  ParseResult ReadList(std::string_view bytes, bool pairs);
  ParseResult Finish(std::string_view bytes);
  ParseResult NeedUntil(std::size_t end, std::size_t available);
  ParseResult Refuse(std::string reason);
  ParseResult RefuseLength(char kind, std::uint64_t length);

  ParserSettings settings_;
  Dialect dialect_ = Dialect::kUndecided;
  bool any_message_ = false;  // A message before this one: opcode 7 then cannot be WATCH_KEY.
  std::optional<std::uint8_t> opcode_;

  // The current message: what is known of it so far.
  bool in_message_ = false;
  Operation operation_ = Operation::kValidate;
  std::string_view fields_left_;
  std::size_t scanned_ = 0;  // Bytes of it that are understood.
  Span key_;
  std::array<Span, 2> values_;
  std::size_t values_read_ = 0;
  std::int64_t number_ = 0;
  std::optional<std::uint64_t> strings_left_;  // Of the list being read; nullopt before its count.
  std::size_t count_ = 0;
  Span items_;

  Request request_;
  std::string refusal_;
  std::size_t missing_ = 1;
};

}  // namespace ddprun
