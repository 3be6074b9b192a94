#include <array>
#include <memory>
#include <string>

#include "rendezvous/store/byte_buffer.h"
#include "rendezvous/store/outbox.h"
#include "rendezvous/store/refusal_log.h"
#include "rendezvous/store/value.h"
#include "tests/support/catch.h"

namespace ddprun {
namespace {

std::string Drain(Outbox& outbox, std::size_t step) {
  std::string sent;
  std::array<std::string_view, Outbox::kMaxPieces> space;
  while (!outbox.empty()) {
    std::size_t gathered = 0;
    for (const std::string_view piece : outbox.Gather(step, space)) {
      sent += piece;
      gathered += piece.size();
    }
    REQUIRE(gathered > 0);
    REQUIRE(gathered <= step);
    outbox.Consume(gathered);
  }
  return sent;
}

TEST_CASE("a byte buffer grows behind and is consumed in front") {
  ByteBuffer buffer;
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    const std::string piece(static_cast<std::size_t>(i % 37), static_cast<char>('a' + i % 26));
    buffer.Append(piece);
    expected += piece;
    const std::size_t drop = expected.size() / 3;
    buffer.Consume(drop);
    expected.erase(0, drop);
    REQUIRE(buffer.view() == expected);
  }
  buffer.Truncate(3);
  CHECK(buffer.view() == expected.substr(0, 3));
  buffer.Consume(3);
  buffer.ShrinkToFit();
  CHECK(buffer.capacity() == 0);
}

TEST_CASE("a byte buffer takes no more than twice what it holds") {
  ByteBuffer buffer;
  for (int i = 0; i < 20000; ++i) {
    buffer.Append("0123456789");
    REQUIRE(buffer.capacity() <= 2 * buffer.size() + 64);
  }
}

TEST_CASE("a large value that is being sent is not changed by an append") {
  Value value(std::string(Value::kShareFrom, 'x'));
  REQUIRE(value.shared());
  const Value sent = value;
  value.Append("more");
  CHECK(sent.view() == std::string(Value::kShareFrom, 'x'));
  CHECK(value.view() == std::string(Value::kShareFrom, 'x') + "more");
  Value small("ab");
  CHECK_FALSE(small.shared());
  small.Append(std::string(Value::kShareFrom, 'y'));
  CHECK(small.shared());
  CHECK(small.size() == Value::kShareFrom + 2);
}

TEST_CASE("an outbox gives back bytes and values in order, in any steps") {
  for (const std::size_t step : {1UL, 5UL, 4096UL, 100000UL}) {
    Outbox outbox;
    std::string expected;
    for (int i = 0; i < 90; ++i) {
      const std::string plain(static_cast<std::size_t>(i % 3), static_cast<char>('a' + i % 26));
      outbox.Append(plain);
      expected += plain;
      if (i % 9 == 0) {
        const std::string large(Value::kShareFrom + static_cast<std::size_t>(i), 'L');
        outbox.Append(Value(large));
        expected += large;
      }
    }
    CHECK(outbox.size() == expected.size());
    CHECK(Drain(outbox, step) == expected);
    outbox.Append("again");
    CHECK(Drain(outbox, step) == "again");
  }
}

TEST_CASE("an outbox lets go of a value as soon as it is sent") {
  auto owner = std::make_shared<ByteBuffer>();
  owner->Append(std::string(5000, 'v'));
  const std::weak_ptr<ByteBuffer> watch = owner;
  Outbox outbox;
  outbox.Append(Value(std::move(owner), 1000));
  outbox.Append("tail");
  outbox.Consume(4000);
  CHECK(watch.expired());
  CHECK(outbox.size() == 4);
}

TEST_CASE("a flood of refusals prints ten lines, then one per second with the count") {
  RefusalLog log;
  TimePoint now{};
  int printed = 0;
  for (int i = 0; i < 100; ++i) {
    printed += log.Filter("line", now).has_value() ? 1 : 0;
  }
  CHECK(printed == 10);
  now += std::chrono::milliseconds(999);
  CHECK_FALSE(log.Filter("line", now).has_value());
  now += std::chrono::milliseconds(1);
  CHECK(log.Filter("line", now) == "line (91 earlier lines were dropped)");
  CHECK_FALSE(log.Filter("line", now).has_value());
  now += std::chrono::hours(1);
  printed = 0;
  for (int i = 0; i < 100; ++i) {
    printed += log.Filter("line", now).has_value() ? 1 : 0;
  }
  CHECK(printed == 10);
}

}  // namespace
}  // namespace ddprun
