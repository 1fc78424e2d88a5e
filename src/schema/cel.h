// Rules of schemas (x-kubernetes-validations): the part of CEL that CRDs use most.
//
// Understood: literals, lists, self, oldSelf, members, indexes, has(), ! - + * / %, comparisons,
// && || ?:, in, size(), int(), string(), startsWith, endsWith, contains, matches (with a literal
// pattern), lowerAscii, and the macros all, exists, exists_one, filter, map. Anything else is
// refused when the CRD is created. Values have no other types than JSON's: times are text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "model/json.h"

namespace hearth::schema {

class CelProgram;

// Throws Error(invalid) that says what is not understood, and where.
std::shared_ptr<const CelProgram> compile_cel(std::string_view text);

// Whether the rule looks at oldSelf: such a rule is for updates only.
bool uses_old_self(const CelProgram& program);

// Whether the rule holds. `old_self` may be null if the rule does not use it. Throws Error(invalid)
// where it cannot be decided: a key that is not there, a wrong type, too many steps.
bool evaluate_cel(const CelProgram& program, const model::Json& self, const model::Json* old_self);

}  // namespace hearth::schema
