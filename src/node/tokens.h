// Tokens of service accounts for the files of pods: asked for once, kept, and renewed in good time.
//
// A kubelet's rule: a token is renewed when four fifths of its life are over, or it is a day old.
// One that cannot be renewed serves until its end. Thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/guarded.h"
#include "client/client.h"

namespace hearth::node {

class Tokens {
 public:
  // Both must outlive it.
  Tokens(client::Client& client, const Clock& clock) : client_(client), clock_(clock) {}

  // Bound to the pod, for `audience` (empty: the API server), for so many seconds. Throws Error.
  std::string get(const model::Json& pod, std::string_view audience, std::int64_t seconds);
  // The pod is gone.
  void forget(std::string_view pod_uid);

 private:
  struct Wish {
    std::string pod_uid;
    std::string account;
    std::string audience;
    std::int64_t seconds = 0;

    auto operator<=>(const Wish&) const = default;
  };
  struct Kept {
    std::string token;
    Time renew_at;
    Time ends;
  };

  Kept request(const model::Json& pod, const Wish& wish);

  client::Client& client_;
  const Clock& clock_;
  Guarded<std::map<Wish, Kept>> kept_;
};

// The pod's service account.
std::string_view account_of(const model::Json& pod);

}  // namespace hearth::node
