// What strangers send as SPDY: refused, or events that do not depend on how the bytes were cut.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "spdy/frames.h"

namespace hearth::spdy {
namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

struct Seen {
  std::size_t events = 0;   // but data
  std::string data;         // of all streams
  std::size_t headers = 0;  // bytes of them
  std::optional<Code> failure;

  bool operator==(const Seen&) const = default;
};

void note(Seen& seen, const Event& event) {
  if (event.kind == EventKind::data) {
    seen.data += event.bytes;
    return;
  }
  ++seen.events;
  for (const auto& [name, value] : event.headers) seen.headers += name.size() + value.size();
}

Seen decode(std::string_view bytes, std::size_t step) {
  Seen seen;
  Decoder decoder(Side::client);
  try {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size()))) {
      decoder.feed(bytes.substr(0, step));
      while (const auto event = decoder.next()) note(seen, *event);
    }
  } catch (const Error& error) {
    check(error.code() == Code::invalid || error.code() == Code::exhausted);
    seen.failure = error.code();
  }
  return seen;
}

}  // namespace
}  // namespace hearth::spdy

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = hearth::spdy::decode(bytes, size + 1);
  hearth::spdy::check(whole == hearth::spdy::decode(bytes, 7));
  return 0;
}
