// What to put into the Authorization field for one repository, and how to come by it.
//
// Registries answer 401 and say where a token can be had. That token is good for a few minutes;
// when it has expired there is another 401, and another token is fetched.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "registry/challenge.h"
#include "registry/credentials.h"
#include "registry/transport.h"

namespace hearth::registry {

// Thread-safe.
class Authorization {
 public:
  // `registry` is whose credentials these are. `transport` must outlive it.
  Authorization(Transport& transport, Url registry, std::string repository,
                Credentials credentials);

  // The field's value; empty: none yet.
  std::string current() const;

  // A request with `used` got a 401 with these challenges: makes current() another one. Throws
  // Error: unauthenticated (nothing more to offer), unavailable, timeout, invalid.
  void renew(const std::string& used, const std::vector<Challenge>& challenges, Duration patience);

 private:
  std::string fetch_token(const Challenge& challenge, Duration patience);
  net::Request token_request(const Challenge& challenge, const Url& realm) const;

  Transport& transport_;
  const Url registry_;
  const std::string repository_;
  const Credentials credentials_;

  std::mutex renewing_;       // held while a token is fetched: one thread does it for all
  mutable std::mutex mutex_;  // guards value_
  std::string value_;
};

// {"token": ...} or {"access_token": ...}. Throws Error(invalid) without quoting it.
std::string parse_token(std::string_view json);

}  // namespace hearth::registry
