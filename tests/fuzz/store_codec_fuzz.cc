// Feeds bytes to the parser and the state of the store, as one connection beside another that
// waits. The first byte chooses how the stream is cut and the settings; the rest is the stream,
// with a hello in front for half of the inputs. The store must never crash, hold more than its
// limit, or parse differently when the stream is cut differently.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/base/check.h"
#include "rendezvous/store/request_parser.h"
#include "rendezvous/store/store_state.h"

namespace ddprun {
namespace {

constexpr std::size_t kMaxStore = std::size_t{1} << 20U;

class Collector final : public ReplySink {
 public:
  void Send(ClientId to, std::string_view bytes) override { bytes_[Index(to)] += bytes; }
  void SendShared(ClientId to, const Value& value) override { bytes_[Index(to)] += value.view(); }
  const std::string& received(ClientId client) const { return bytes_[Index(client)]; }

 private:
  static std::size_t Index(ClientId client) { return static_cast<std::size_t>(client); }
  std::string bytes_[2];
};

ParserSettings SettingsOf(std::uint8_t choice) {
  ParserSettings settings;
  settings.legacy_is_2_1 = (choice & 0x40U) != 0;
  settings.limits = ParseLimits{256, 4096, 64, 65536};
  return settings;
}

// What the client receives and how it ends, for a stream cut in pieces of this size.
std::string Serve(std::string_view stream, std::size_t piece, std::uint8_t choice) {
  constexpr ClientId kClient{0};
  constexpr ClientId kOther{1};
  StoreState state(StoreLimits{kMaxStore, kMaxStore});
  Collector replies;
  state.Connect(kClient);
  state.Connect(kOther);
  Request wait;
  wait.operation = Operation::kGetNumKeys;
  DDP_CHECK(!state.Execute(kOther, wait, replies));
  RequestParser parser(SettingsOf(choice));
  std::string held;
  std::string end = "open";
  for (std::size_t at = 0; at < stream.size() && end == "open"; at += piece) {
    held += stream.substr(at, piece);
    ParseResult result = parser.Next(held);
    while (result == ParseResult::kRequest) {
      const Refusal refusal = state.Execute(kClient, parser.request(), replies);
      DDP_CHECK(state.stored_bytes() <= kMaxStore);
      held.erase(0, parser.request().size);
      if (refusal) {
        end = *refusal;
        break;
      }
      result = parser.Next(held);
    }
    if (result == ParseResult::kRefused) {
      end = "refused";  // The reason may name fewer bytes when fewer had come.
    }
  }
  state.Disconnect(kClient, replies);
  return replies.received(kClient) + end;
}

}  // namespace
}  // namespace ddprun

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::uint8_t choice = data[0];
  std::string stream = (choice & 0x80U) != 0 ? std::string("\x00\xce\xf7\x85\x3c", 5) : "";
  stream.append(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = 1 + (choice & 0x3fU);
  const std::string cut = ddprun::Serve(stream, piece, choice);
  DDP_CHECK(cut == ddprun::Serve(stream, stream.size() + 1, choice));
  return 0;
}
