#include "rendezvous/store/request_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ddprun {
namespace {

// Opcode 12 is the first that no legacy client has; HTTP, TLS and SSH begin above it too.
constexpr std::uint8_t kFirstForeignOpcode = 12;
constexpr std::array<char, 5> kBigEndianHello = {'\x00', '\x3c', '\x85', '\xf7', '\xce'};

// Dialect C; numbers were only ever appended after torch 2.2. The index is the opcode.
constexpr std::array kOperationsOfC = {
    Operation::kValidate,   Operation::kSet,      Operation::kCompareSet, Operation::kGet,
    Operation::kAdd,        Operation::kCheck,    Operation::kWait,       Operation::kGetNumKeys,
    Operation::kDeleteKey,  Operation::kAppend,   Operation::kMultiGet,   Operation::kMultiSet,
    Operation::kCancelWait, Operation::kPing,     Operation::kQueuePush,  Operation::kQueuePop,
    Operation::kQueueLen,   Operation::kListKeys, Operation::kBarrier,
};

// Dialects A and B, as far as they agree.
constexpr std::array kCommonLegacyOperations = {
    Operation::kSet,   Operation::kCompareSet, Operation::kGet,        Operation::kAdd,
    Operation::kCheck, Operation::kWait,       Operation::kGetNumKeys,
};

std::string_view Part(std::string_view bytes, std::size_t begin, std::size_t size) {
  return bytes.substr(begin, size);
}

}  // namespace

RequestParser::RequestParser(const ParserSettings& settings) : settings_(settings) {}

ParseResult RequestParser::Next(std::string_view bytes) {
  if (bytes.empty()) {
    return NeedUntil(1, 0);
  }
  if (dialect_ == Dialect::kUndecided) {
    opcode_ = static_cast<std::uint8_t>(bytes[0]);
    const ParseResult detected = DetectDialect(bytes);
    if (dialect_ == Dialect::kUndecided || dialect_ == Dialect::kC) {
      return detected;
    }
  }
  if (!in_message_) {
    const ParseResult begun = BeginMessage(bytes);
    if (begun == ParseResult::kRefused) {
      return begun;
    }
  }
  return ReadFields(bytes);
}

// Five bytes are enough: read as a legacy message, the hello is a SET whose key is 968 MiB long at
// least, which no limit admits.
ParseResult RequestParser::DetectDialect(std::string_view bytes) {
  if (*opcode_ >= kFirstForeignOpcode) {
    return Refuse("not a TCPStore client: its first byte is no operation of any torch release");
  }
  const std::size_t compared = std::min(bytes.size(), kHello.size());
  const bool may_be_c = bytes.substr(0, compared) == AsView(kHello).substr(0, compared);
  if (settings_.mode == DialectMode::kOnly2x && !may_be_c) {
    const bool big_endian =
        bytes.substr(0, compared) == AsView(kBigEndianHello).substr(0, compared);
    if (!big_endian || compared == kHello.size()) {
      return Refuse(big_endian ? "the client is big-endian"
                               : "only clients of torch 2.2 or newer are taken here");
    }
  }
  if (*opcode_ == 0 && bytes.size() < kHello.size()) {
    return NeedUntil(kHello.size(), bytes.size());
  }
  if (*opcode_ == 0) {
    return JudgeHello(bytes);
  }
  dialect_ = settings_.legacy_is_2_1 ? Dialect::kB : Dialect::kLegacy;
  return ParseResult::kNeedMore;
}

ParseResult RequestParser::JudgeHello(std::string_view bytes) {
  const std::string_view hello = bytes.substr(0, kHello.size());
  if (hello == AsView(kBigEndianHello)) {
    return Refuse("the client is big-endian");
  }
  if (hello != AsView(kHello)) {
    dialect_ = settings_.legacy_is_2_1 ? Dialect::kB : Dialect::kLegacy;
    return ParseResult::kNeedMore;
  }
  if (settings_.mode == DialectMode::kOnly1x) {
    return Refuse("only clients of torch 1.9 to 2.1 are taken here");
  }
  dialect_ = Dialect::kC;
  request_ = Request();
  request_.size = kHello.size();
  return ParseResult::kRequest;
}

ParseResult RequestParser::BeginMessage(std::string_view bytes) {
  opcode_ = static_cast<std::uint8_t>(bytes[0]);
  const std::optional<Operation> operation = OperationOf(*opcode_);
  if (!operation) {
    return Refuse(dialect_ == Dialect::kC && *opcode_ == 0 ? "VALIDATE after the first message"
                                                           : "unknown opcode");
  }
  in_message_ = true;
  operation_ = *operation;
  fields_left_ = LayoutOf(operation_).fields;
  scanned_ = 1;
  values_read_ = 0;
  key_ = Span();
  values_ = {};
  number_ = 0;
  strings_left_.reset();
  count_ = 0;
  items_ = Span();
  return ParseResult::kNeedMore;
}

std::optional<Operation> RequestParser::OperationOf(std::uint8_t opcode) {
  if (dialect_ != Dialect::kC) {
    return LegacyOperationOf(opcode);
  }
  if (opcode == 0 || opcode >= kOperationsOfC.size()) {
    return std::nullopt;
  }
  return kOperationsOfC[opcode];
}

// A and B differ from opcode 7 on. Evidence for one of them is kept for the whole connection; see
// docs/protocol.md for why an undecided 8 is DELETE_KEY.
std::optional<Operation> RequestParser::LegacyOperationOf(std::uint8_t opcode) {
  if (opcode < kCommonLegacyOperations.size()) {
    return kCommonLegacyOperations[opcode];
  }
  if (opcode == 7 && dialect_ == Dialect::kLegacy) {
    dialect_ = any_message_ ? Dialect::kB : Dialect::kA;
  }
  if (opcode >= 9 && opcode <= 11) {
    dialect_ = Dialect::kB;
  }
  switch (opcode) {
    case 7:
      return dialect_ == Dialect::kA ? Operation::kWatchKey : Operation::kDeleteKey;
    case 8:
      return dialect_ == Dialect::kB ? Operation::kAppend : Operation::kDeleteKey;
    case 9:
      return Operation::kMultiGet;
    case 10:
      return Operation::kMultiSet;
    case 11:
      return Operation::kCancelWait;
    default:
      return std::nullopt;
  }
}

ParseResult RequestParser::ReadFields(std::string_view bytes) {
  while (!fields_left_.empty()) {
    const ParseResult read = ReadField(fields_left_.front(), bytes);
    if (read != ParseResult::kRequest) {
      return read;
    }
    fields_left_.remove_prefix(1);
  }
  return Finish(bytes);
}

// kRequest here means that the field is complete.
ParseResult RequestParser::ReadField(char kind, std::string_view bytes) {
  switch (kind) {
    case 'k':
      return ReadString(bytes, kind, key_);
    case 'v': {
      const ParseResult read = ReadString(bytes, kind, values_[values_read_]);
      values_read_ += read == ParseResult::kRequest ? 1 : 0;
      return read;
    }
    case 'u':
      return ReadNumber(bytes, 4);
    case 'n':
      return ReadNumber(bytes, kLengthSize);
    default:
      return ReadList(bytes, kind == 'P');
  }
}

ParseResult RequestParser::ReadString(std::string_view bytes, char kind, Span& field) {
  const std::size_t limit = kind == 'k' ? settings_.limits.max_key : settings_.limits.max_value;
  const std::size_t available = bytes.size() - scanned_;
  if (available < kLengthSize) {
    // The low bytes alone may already say too much: the missing ones can only add to them.
    std::array<char, kLengthSize> low{};
    std::copy_n(bytes.data() + scanned_, available, low.data());
    const std::uint64_t at_least = ReadU64(AsView(low));
    return at_least > limit ? RefuseLength(kind, at_least)
                            : NeedUntil(scanned_ + kLengthSize, bytes.size());
  }
  const std::uint64_t length = ReadU64(bytes.substr(scanned_));
  if (length > limit) {
    return RefuseLength(kind, length);
  }
  const std::size_t begin = scanned_ + kLengthSize;
  if (begin + length > settings_.limits.max_request) {
    return Refuse(fmt::format("a request of more than {} bytes", settings_.limits.max_request));
  }
  if (bytes.size() - begin < length) {
    return NeedUntil(begin + length, bytes.size());
  }
  field = Span{begin, length};
  scanned_ = begin + length;
  return ParseResult::kRequest;
}

ParseResult RequestParser::ReadNumber(std::string_view bytes, std::size_t width) {
  if (bytes.size() - scanned_ < width) {
    return NeedUntil(scanned_ + width, bytes.size());
  }
  std::array<char, kLengthSize> digits{};
  std::copy_n(bytes.data() + scanned_, width, digits.data());
  number_ = static_cast<std::int64_t>(ReadU64(AsView(digits)));
  scanned_ += width;
  return ParseResult::kRequest;
}

ParseResult RequestParser::ReadList(std::string_view bytes, bool pairs) {
  if (!strings_left_) {
    if (bytes.size() - scanned_ < kLengthSize) {
      return NeedUntil(scanned_ + kLengthSize, bytes.size());
    }
    const std::uint64_t count = ReadU64(bytes.substr(scanned_));
    if (count > settings_.limits.max_keys) {
      return Refuse(fmt::format("{} keys in one request, more than the limit of {}", count,
                                settings_.limits.max_keys));
    }
    count_ = count;
    strings_left_ = pairs ? count * 2 : count;
    scanned_ += kLengthSize;
    items_.begin = scanned_;
  }
  Span ignored;  // ItemReader finds the elements again.
  while (*strings_left_ > 0) {
    const bool value = pairs && *strings_left_ % 2 == 1;
    const ParseResult read = ReadString(bytes, value ? 'v' : 'k', ignored);
    if (read != ParseResult::kRequest) {
      return read;
    }
    --*strings_left_;
  }
  items_.size = scanned_ - items_.begin;
  return ParseResult::kRequest;
}

ParseResult RequestParser::Finish(std::string_view bytes) {
  const bool compare = values_read_ == 2;
  const Span& value = values_[compare ? 1 : 0];
  request_ = Request();
  request_.operation = operation_;
  request_.size = scanned_;
  request_.key = Part(bytes, key_.begin, key_.size);
  request_.value = Part(bytes, value.begin, value.size);
  request_.expected = compare ? Part(bytes, values_[0].begin, values_[0].size) : std::string_view();
  request_.number = number_;
  request_.count = count_;
  request_.items = Part(bytes, items_.begin, items_.size);
  in_message_ = false;
  any_message_ = true;
  return ParseResult::kRequest;
}

ParseResult RequestParser::NeedUntil(std::size_t end, std::size_t available) {
  missing_ = end - available;
  return ParseResult::kNeedMore;
}

ParseResult RequestParser::Refuse(std::string reason) {
  refusal_ = std::move(reason);
  return ParseResult::kRefused;
}

ParseResult RequestParser::RefuseLength(char kind, std::uint64_t length) {
  const bool key = kind == 'k';
  return Refuse(fmt::format("a {} of at least {} bytes, the limit is {}", key ? "key" : "value",
                            length, key ? settings_.limits.max_key : settings_.limits.max_value));
}

}  // namespace ddprun
