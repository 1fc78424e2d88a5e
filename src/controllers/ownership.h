// Whose an object is, and whether a Sandbox may take one that is nobody's.
#pragma once

#include <string>
#include <string_view>

#include "model/json.h"

namespace hearth::controllers {

using model::Json;

enum class Ownership {
  owned,    // controlled by this very Sandbox, by uid
  unowned,  // by nobody
  foreign,  // by somebody else
};

Ownership ownership_of(const Json& child, const Json& sandbox);

// Throw Error(conflict); `word` is what people call the child: "pod", "service", "PVC".
[[noreturn]] void throw_foreign(const Json& child, const Json& sandbox, std::string_view word);
// An unowned child may be adopted if it says so or carries the Sandbox's tracking label: its name
// alone proves nothing.
void require_adoptable(const Json& child, const Json& sandbox, std::string_view word);

}  // namespace hearth::controllers
