// Messages from strangers, in both encodings. What was understood means the same after a detour
// through the other encoding.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "envd/messages.h"

using namespace hearth;
using namespace hearth::envd;

namespace {

template <typename M>
void try_message(Codec codec, std::string_view bytes) {
  const M message = decode<M>(codec, bytes);
  const std::string text = to_json(message);
  const std::string binary = to_proto(message);
  HEARTH_ASSERT(to_proto(from_proto<M>(binary)) == binary);
  // What is no UTF-8 is replaced once, and then stays.
  const std::string again = to_json(from_json<M>(text));
  HEARTH_ASSERT(codec == Codec::proto || again == text);
  HEARTH_ASSERT(to_json(from_json<M>(again)) == again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Codec codec = data[0] % 2 == 0 ? Codec::json : Codec::proto;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  int kind = 0;
  try {
#define HEARTH_TRY(M) \
  if (data[1] % 19 == kind++) try_message<M>(codec, bytes);
    HEARTH_ENVD_MESSAGES(HEARTH_TRY)
#undef HEARTH_TRY
  } catch (const Error& error) {
    HEARTH_ASSERT(error.code() == Code::invalid);
  }
  return 0;
}
