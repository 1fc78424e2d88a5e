// Whose API key it is.
#pragma once

#include <string>

namespace hearth::gateway {

struct KeyOwner {
  std::string ns;  // of the team; empty: nobody's
  std::string id;  // of the key, which may be told
};

}  // namespace hearth::gateway
