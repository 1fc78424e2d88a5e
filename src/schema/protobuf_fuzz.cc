// Protobuf bodies: whatever comes, the answer is an object that can be written and read again, or
// an error that says so.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "schema/builtin.h"

namespace hearth::schema {
namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void decode(std::string_view body) {
  Json object;
  try {
    object = decode_protobuf(body);
  } catch (const Error& error) {
    check(error.code() == Code::invalid);
    return;
  }
  check(object.is_object());
  const auto read = model::parse_json(model::to_text(object));
  check(model::is_same(read.value, object));
  const SchemaPtr schema =
      find_builtin(model::text_at(object, {"apiVersion"}), model::text_at(object, {"kind"}));
  check(schema != nullptr);
  std::vector<std::string> unknown;
  prune(object, *schema, &unknown);
  check(unknown.empty());
  drop_zero_values(object, *schema);
  apply_defaults(object, *schema);
  validate(object, *schema, nullptr);
}

}  // namespace
}  // namespace hearth::schema

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 65536) return 0;
  hearth::schema::decode({reinterpret_cast<const char*>(data), size});
  return 0;
}
