// What a server under probe may answer: anything.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "node/grpc_health.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  hearth::node::HealthAnswer answer;
  try {
    // In two pieces, wherever they part.
    const std::size_t half = size / 2;
    answer.take(bytes.substr(0, half));
    answer.take(bytes.substr(half));
  } catch (const hearth::Error&) {
    return 0;
  }
  static_cast<void>(answer.status());
  return 0;
}
