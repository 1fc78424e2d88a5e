// What the privileged process parses: requests of its clients, and its own records.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "runtime/protocol.h"
#include "runtime/record.h"

using namespace hearth;

// A message that is understood means the same after a round trip; every other one is refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 3) {
      case 0: {
        const std::string again = runtime::encode(runtime::parse_request(bytes));
        HEARTH_ASSERT(again == bytes);
        break;
      }
      case 1:
        runtime::parse_reply(runtime::encode(runtime::parse_reply(bytes)));
        break;
      default:
        runtime::parse_record(runtime::encode(runtime::parse_record(bytes)));
    }
  } catch (const Error& error) {
    HEARTH_ASSERT(error.code() == Code::invalid);
  }
  return 0;
}
