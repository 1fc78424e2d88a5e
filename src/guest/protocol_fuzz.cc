// What crosses the wall between a sandbox and the host: requests, replies, plans, and the user
// files that the sandbox itself writes.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "guest/boot.h"
#include "guest/protocol.h"
#include "guest/spawner.h"
#include "guest/users.h"

using namespace hearth;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 6) {
      case 0: {
        const std::string again = guest::encode(guest::parse_request(bytes));
        HEARTH_ASSERT(again == bytes);
        break;
      }
      case 1:
        guest::parse_reply(guest::encode(guest::parse_reply(bytes)));
        break;
      case 2:
        guest::parse_assignment(bytes);
        break;
      case 3:
        guest::parse_shell_order(bytes);
        break;
      case 4:
        guest::parse_nursery_config(bytes);
        break;
      default: {
        const std::size_t half = bytes.size() / 2;
        for (const char* wanted : {"root", "user", "1000", "user:docker", "7:9"}) {
          try {
            guest::find_user(bytes.substr(0, half), bytes.substr(half), wanted);
          } catch (const Error& error) {
            HEARTH_ASSERT(error.code() == Code::invalid);
          }
        }
      }
    }
  } catch (const Error& error) {
    HEARTH_ASSERT(error.code() == Code::invalid);
  }
  return 0;
}
