// The two versions of the agent-sandbox kinds, and how one becomes the other.
//
// v1beta1 is the one that is kept. What v1alpha1 says and v1beta1 cannot is kept in annotations, so
// that an object which went there and back is what it was.
#pragma once

#include <string_view>

#include "model/json.h"

namespace hearth::model {

// Whether there is a conversion for the kind (Sandbox, SandboxClaim, ...) of the group.
bool has_conversion(std::string_view group, std::string_view kind);

// In place, apiVersion included; an object that has the version already is left alone.
//
// Throws Error(invalid) for an annotation that stands for a field and makes no sense.
void to_v1beta1(Json& object);
// Never throws on account of what an object says: what is kept is always shown.
void to_v1alpha1(Json& object);

}  // namespace hearth::model
