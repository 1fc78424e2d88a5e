// Any JSON, written as YAML, reads as the same value.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "model/json.h"
#include "model/yaml_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  hearth::model::Json value;
  try {
    value = hearth::model::parse_json(text).value;
  } catch (const hearth::Error&) {
    return 0;
  }
  const auto again = hearth::model::parse_yaml(hearth::model::to_yaml(value)).value;
  if (!hearth::model::is_same(value, again)) std::abort();
  return 0;
}
