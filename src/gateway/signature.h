// Signed links to files: who has one needs no token. Pure.
//
//   signature = "v1_" + base64(SHA256(path ":" operation ":" user ":" token [":" expiration]))
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth::gateway {

// The value of the query's parameter, decoded, is all that is told of it; whether it is still in
// time is envd's to say.
class Signature {
 public:
  // Of a request for "/files". Nothing: it has no signature, or none that could be anybody's.
  static std::optional<Signature> find(std::string_view method, std::string_view query);

  bool is_of(std::string_view token) const;

 private:
  std::string before_;  // the token
  std::string after_;
  std::string digest_;
};

// Whether the query has one, whatever it is worth.
bool has_signature(std::string_view query);

}  // namespace hearth::gateway
