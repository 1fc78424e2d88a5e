// From a request to a user.
//
// In the order of a real server: a verified client certificate, then a bearer token, then nobody. A
// token that is unknown is an error even where anybody may ask; other schemes of Authorization are
// as good as none. Thread-safe if the directory is.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/rules.h"
#include "access/user.h"
#include "base/clock.h"
#include "http/http.h"
#include "pki/token.h"

namespace hearth::access {

// Tokens of service accounts end with what they are bound to: the uid of an object that is there
// and not being deleted, or nothing. An unset function knows no object.
struct Directory {
  using FindUid =
      std::function<std::optional<std::string>(const std::string& ns, const std::string& name)>;
  FindUid account;
  FindUid pod;
};

struct StaticToken {
  std::string token;
  User user;
};

struct TokenUser {
  User user;
  std::vector<std::string> audiences;  // those asked for that the token is for
};

class Authenticator {
 public:
  struct Options {
    std::vector<StaticToken> tokens = {};
    const pki::TokenSigner* signer = nullptr;  // null: no tokens of service accounts
    // What a token must be for; the signer's issuer if empty.
    std::vector<std::string> audiences = {};
    Directory directory = {};
  };

  // Signer and clock must outlive it.
  Authenticator(Options options, const Clock& clock);

  // Throws StatusError 401.
  User authenticate(const http::Request& request) const;

  // Whose token it is, if it is for one of `audiences` (the server's own if empty).
  std::optional<TokenUser> find_token(std::string_view token,
                                      const std::vector<std::string>& audiences) const;

  const std::vector<std::string>& audiences() const { return options_.audiences; }

 private:
  std::optional<User> find_account(const pki::Claims& claims) const;

  Options options_;
  const Clock& clock_;
};

// The user that the Impersonate-* headers ask to act as; `asking` itself without any. Throws
// StatusError: 403 without the verb `impersonate` on each of user, groups, uid and extra; 400 for
// groups and the like without a user.
User impersonate(const User& asking, const http::Headers& headers, const Rules& rules);

}  // namespace hearth::access
