// The end of a sandbox: now, or later than it would have been.
#pragma once

#include <cstdint>
#include <string_view>

#include "e2b/core.h"

namespace hearth::e2b {

// Deletes it; the cache knows when this returns. Throws Refusal(404) when somebody was faster. With
// `version`, StatusError with 409 where it has changed since.
void kill(Core& core, const Json& sandbox, std::string_view version = {});

// As it is then.
Json set_end(Core& core, const Json& sandbox, Time end);
// To so many seconds from now, unless its end is later anyway.
void extend(Core& core, const Json& sandbox, std::int64_t seconds);

}  // namespace hearth::e2b
