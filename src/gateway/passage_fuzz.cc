// Bodies in pieces of any size: a passage lets exactly the same bytes through, and finds the same
// end, however they were split; what is no body is never passed on beyond where it went wrong.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gateway/passage.h"

namespace hearth::gateway {
namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

struct Passed {
  std::string bytes;
  bool is_bad = false;
  bool is_done = false;
};

Passed pass(std::string_view text, http::Framing framing, std::size_t piece) {
  BufferPool pool;
  Passage passage(pool);
  Passed passed;
  passed.is_bad = !passage.begin_body(0, framing);
  std::size_t count = 0;
  while (!passed.is_bad && !passage.is_framed() && !text.empty()) {
    const auto room = passage.room();
    check(!room.empty());
    const std::size_t size = std::min({text.size(), room.size(), 1 + (piece * ++count) % 97});
    std::copy_n(text.begin(), size, room.begin());
    passage.filled(size);
    text.remove_prefix(size);
    passed.is_bad = !passage.frame();
    passed.bytes += passage.ready();
    passage.sent(passage.ready().size());
  }
  passed.is_done = passage.is_framed();
  return passed;
}

}  // namespace
}  // namespace hearth::gateway

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth::gateway;
  if (size < 2 || size > 8192) return 0;
  const hearth::http::BodyKind kinds[] = {hearth::http::BodyKind::length,
                                          hearth::http::BodyKind::chunked,
                                          hearth::http::BodyKind::until_end};
  const hearth::http::Framing framing{.kind = kinds[data[0] % 3], .length = 1U + data[1]};
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Passed one = pass(text, framing, 96);
  const Passed other = pass(text, framing, 1U + data[1]);
  check(one.is_done == other.is_done);
  check(text.starts_with(one.bytes) && text.starts_with(other.bytes));
  if (!one.is_bad && !other.is_bad && one.is_done) check(one.bytes == other.bytes);
  return 0;
}
