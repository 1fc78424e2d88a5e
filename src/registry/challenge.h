// "WWW-Authenticate: Bearer realm=..., service=..., scope=...": what a registry wants to see.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::registry {

struct Challenge {
  std::string scheme;                             // lower case
  std::map<std::string, std::string> parameters;  // names in lower case

  bool operator==(const Challenge&) const = default;
};

// Nothing is thrown: what cannot be understood is left out, as if the server had not said it. Takes
// the first few only.
std::vector<Challenge> parse_challenges(std::string_view header);

}  // namespace hearth::registry
