// The small APIs that answer a question and keep nothing: access reviews, who am I, tokens.
//
// Each takes the object as it was sent and returns it filled in, or throws StatusError. The
// question whether one may ask at all comes before and is the server's.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "access/authenticator.h"
#include "access/rules.h"
#include "access/user.h"
#include "base/clock.h"
#include "model/json.h"
#include "pki/token.h"

namespace hearth::access {

// authorization.k8s.io/v1.
Json review_self_access(const Json& review, const User& user, const Rules& rules);
Json review_access(const Json& review, const Rules& rules);
// `ns`: of the path.
Json review_local_access(const Json& review, const std::string& ns, const Rules& rules);
Json review_self_rules(const Json& review, const User& user, const Rules& rules);

// authentication.k8s.io/v1.
Json review_self(const User& user, Time now);
Json review_token(const Json& review, const Authenticator& authenticator);

// A pod that a token shall end with.
struct BoundPod {
  std::string uid;
  std::string account;  // its spec.serviceAccountName
  std::string node;     // may be empty
  std::string node_uid;
};

// POST serviceaccounts/NAME/token.
struct TokenDesk {
  const pki::TokenSigner* signer = nullptr;
  std::vector<std::string> audiences = {};  // of tokens that ask for none
  std::string ns;
  pki::ObjectId account;  // which is there
  std::function<std::optional<BoundPod>(const std::string& name)> find_pod = {};
};
Json issue_token(const Json& request, const TokenDesk& desk, Time now);

}  // namespace hearth::access
