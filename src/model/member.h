// A member of an object by its name, for those who look up hundreds in the life of a request:
// Boost's own lookup is four calls into a shared library.
#pragma once

#include <cstring>
#include <string_view>

#include "model/json.h"

namespace hearth::model {

// Null for none.
inline const Json* find_member(const JsonObject& object, std::string_view name) {
  constexpr std::size_t kMostToCompare = 18;  // more have an index, as Boost makes it
  if (object.size() > kMostToCompare) return object.if_contains(name);
  for (const auto& member : object) {
    const auto key = member.key();
    if (key.size() == name.size() && std::memcmp(key.data(), name.data(), name.size()) == 0)
      return &member.value();
  }
  return nullptr;
}

}  // namespace hearth::model
