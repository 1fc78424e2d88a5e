// Who owns what, as text that tests compare.
#pragma once

#include <string>
#include <string_view>

#include "model/json.h"

namespace hearth::patch {

// "manager operation[/subresource] fields" by line.
inline std::string owners(const model::Json& object) {
  std::string text;
  const auto* entries = model::array_at(object, {"metadata", "managedFields"});
  if (!entries) return "none";
  for (const model::Json& entry : *entries) {
    text += text.empty() ? "" : "\n";
    text += model::text_at(entry, {"manager"});
    text += ' ';
    text += model::text_at(entry, {"operation"});
    const std::string_view subresource = model::text_at(entry, {"subresource"});
    if (!subresource.empty()) text += '/' + std::string(subresource);
    text += ' ' + model::to_text(*model::find(entry, {"fieldsV1"}));
  }
  return text;
}

}  // namespace hearth::patch
