// What a hostile kernel writes to the guest's socket, in pieces as the first byte says.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "interpreter/event_stream.h"
#include "interpreter/frames.h"

using namespace hearth;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  HEARTH_ASSERT(interpreter::whole_characters(bytes) <= bytes.size());
  HEARTH_ASSERT(bytes.size() - interpreter::whole_characters(bytes) <= 3);
  const std::size_t step = data[0] == 0 ? size : data[0];
  interpreter::FrameReader reader;
  std::size_t taken = 0;
  try {
    while (!bytes.empty()) {
      reader.feed(bytes.substr(0, step));
      bytes.remove_prefix(std::min(step, bytes.size()));
      while (const auto frame = reader.next()) taken += frame->piece.size();
    }
  } catch (const Error& error) {
    HEARTH_ASSERT(error.code() == Code::invalid);
  }
  HEARTH_ASSERT(taken < size);
  return 0;
}
