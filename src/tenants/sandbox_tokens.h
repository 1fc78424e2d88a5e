// Tokens of sandboxes, which nobody has to store: HMAC-SHA-256 of purpose, namespace and id with
// one seed. With the namespace: whoever may name sandboxes in one of his own gets no tokens of
// another's.
//
// The same sandbox has the same tokens as long as the seed lives; it is in a Secret in
// hearth-system. Whoever holds a token learns nothing about another.
#pragma once

#include <string>
#include <string_view>

#include "client/client.h"
#include "model/meta.h"

namespace hearth::tenants {

// Immutable and thread-safe.
class SandboxTokens {
 public:
  // 32 bytes or more; throws Error(invalid) for fewer.
  explicit SandboxTokens(std::string seed);

  // 64 hexadecimal digits each. Compare with http::equal_constant_time.
  // For envd and other surfaces inside (X-Access-Token).
  std::string envd_token(const model::Key& sandbox) const;
  // For ports of the user's own (E2B-Traffic-Access-Token).
  std::string traffic_token(const model::Key& sandbox) const;

 private:
  std::string token(std::string_view purpose, const model::Key& sandbox) const;

  std::string seed_;
};

// The seed that the cluster keeps; made by whoever needs it first. Throws StatusError, and
// Error(invalid) for a Secret that holds none: making another would lock everybody out silently.
std::string load_token_seed(client::Client& client);

}  // namespace hearth::tenants
