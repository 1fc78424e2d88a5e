// A server's identity together with the authority that signed it, as text: for servers whose
// replicas share it, and keep it in a place of their own. Throws Error.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "pki/authority.h"

namespace hearth::pki {

struct Serving {
  // What clients shall trust, the newest first. There is more than one where the last authority's
  // key was not kept: some replicas may still show what that one signed.
  std::string authority;
  std::string authority_key;
  Identity server;
};

// `kept`, if it is good for just these names (of a host, or addresses) and for another year at
// least; otherwise what must take its place, from the same authority if its key is there.
// Whatever `kept` holds: what cannot be read counts as not there.
Serving renew_serving(const Serving& kept, const std::vector<std::string>& names, Time now);

}  // namespace hearth::pki
