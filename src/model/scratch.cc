#include "model/scratch.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json_text.h"

namespace hearth::model {
namespace {

void check_string(std::string_view text) {
  if (!is_utf8(text)) fail(Code::invalid, "text is not UTF-8: '{}'", to_utf8(text));
}

// What text cannot say is refused; of whole numbers text does not say how they are held.
void settle(Json& value, std::size_t depth) {
  if (depth > kMostDepth) fail(Code::invalid, "nested deeper than {}", kMostDepth);
  switch (value.kind()) {
    case boost::json::kind::object:
      for (auto& [key, child] : value.get_object()) {
        check_string(key);
        settle(child, depth + 1);
      }
      break;
    case boost::json::kind::array:
      for (Json& child : value.get_array()) settle(child, depth + 1);
      break;
    case boost::json::kind::string:
      check_string(value.get_string());
      break;
    case boost::json::kind::uint64:
      if (value.get_uint64() <= std::numeric_limits<std::int64_t>::max())
        value = static_cast<std::int64_t>(value.get_uint64());
      break;
    case boost::json::kind::double_:
      if (!std::isfinite(value.get_double())) fail(Code::invalid, "a number is none");
      break;
    default:
      break;
  }
}

}  // namespace

void empty_room(std::string& room) {
  constexpr std::size_t kMost = 256 << 10;
  if (room.capacity() > kMost) room = {};
  room.clear();
}

Json checked_copy(const Json& value, Storage storage) {
  Json copy(value, std::move(storage));
  settle(copy, 1);
  return copy;
}

}  // namespace hearth::model
