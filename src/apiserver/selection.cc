#include "apiserver/selection.h"

#include "apiserver/kept.h"

namespace hearth::apiserver {

bool Selection::matches(const store::Object& object, const Resource& resource) const {
  if (!labels.is_empty()) {
    model::Labels present;
    for (const auto& [name, value] : object.tags)
      if (!name.starts_with('\x01')) present.emplace_back(name, value);
    if (!labels.matches(present)) return false;
  }
  for (const model::FieldSelector::Term& term : fields.terms())
    if ((field_text(object, resource, term.field) == term.value) != term.is_equal) return false;
  return true;
}

std::optional<std::string> Selection::only_name() const {
  const auto name = fields.required_value("metadata.name");
  return name ? std::optional<std::string>(*name) : std::nullopt;
}

}  // namespace hearth::apiserver
