#include "base/error.h"
#include "schema/builtin.h"

namespace hearth::schema {
Json decode_protobuf(std::string_view) {
  fail(Code::invalid, "not yet");
}
}  // namespace hearth::schema
