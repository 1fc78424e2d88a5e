// What pools say about the template that they are made of: NAME of their own namespace, or NS/NAME,
// a public one of another's. No object is called with a slash, so nobody's own is ever meant by it.
#pragma once

#include <string_view>

#include "model/meta.h"

namespace hearth::model {

// As it is written.
std::string_view template_ref_of(const Json& pool);
Key template_key(std::string_view ns, std::string_view reference);
Key template_key_of(const Json& pool);

// Whether every namespace may use it.
bool is_public_template(const Json& sandbox_template);
bool is_usable_from(std::string_view ns, const Json& sandbox_template);

}  // namespace hearth::model
