// Any bytes as YAML: read or refused.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "model/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  hearth::model::Json value;
  try {
    value = hearth::model::parse_yaml(text).value;
  } catch (const hearth::Error&) {
    return 0;
  }
  // Not compared: the last digit of a long number may differ between the two readers.
  try {
    hearth::model::parse_json(hearth::model::to_text(value));
  } catch (const hearth::Error&) {
    // Text in YAML may be bytes that JSON has no way to write.
  }
  return 0;
}
