#include "model/template_ref.h"

#include <string>

#include "model/front_door.h"

namespace hearth::model {

std::string_view template_ref_of(const Json& pool) {
  return text_at(pool, {"spec", "sandboxTemplateRef", "name"});
}

Key template_key(std::string_view ns, std::string_view reference) {
  const auto slash = reference.find('/');
  if (slash == reference.npos) return {std::string(ns), std::string(reference)};
  return {std::string(reference.substr(0, slash)), std::string(reference.substr(slash + 1))};
}

Key template_key_of(const Json& pool) {
  return template_key(namespace_of(pool), template_ref_of(pool));
}

bool is_public_template(const Json& sandbox_template) {
  return label_of(sandbox_template, kPublicLabel) == "true";
}

bool is_usable_from(std::string_view ns, const Json& sandbox_template) {
  return namespace_of(sandbox_template) == ns || is_public_template(sandbox_template);
}

}  // namespace hearth::model
