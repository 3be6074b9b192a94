// Whatever bytes a worker leaves as its error file: the reading is bounded, valid UTF-8, and its
// record is one that the same parser takes again without a change.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "agent/core/clean_text.h"
#include "agent/process/error_file.h"
#include "rendezvous/base/check.h"

namespace {

void CheckReading(const ddprun::ErrorFileReading& reading) {
  DDP_CHECK(reading.present);
  DDP_CHECK(ddprun::ReplaceInvalidUtf8(reading.message) == reading.message);
  DDP_CHECK(ddprun::ReplaceInvalidUtf8(reading.headline) == reading.headline);
  DDP_CHECK(ddprun::CountCodePoints(reading.headline) <= 500);
  DDP_CHECK(reading.headline.find('\n') == std::string::npos);
  DDP_CHECK(!reading.record.empty() || !reading.warning.empty());
  if (reading.record.empty()) {
    DDP_CHECK(!reading.timestamp);
    DDP_CHECK(reading.message.size() <= 4 * ddprun::kMaxErrorText);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const ddprun::ErrorFileReading reading = ddprun::ParseErrorFile(bytes);
  CheckReading(reading);
  if (!reading.record.empty()) {
    const ddprun::ErrorFileReading again = ddprun::ParseErrorFile(reading.record);
    DDP_CHECK(again.record == reading.record);
    DDP_CHECK(again.message == reading.message);
    DDP_CHECK(again.timestamp == reading.timestamp);
  }
  return 0;
}
