// Tokens of service accounts: JSON Web Tokens signed by a key of our own, and plain random ones.
//
// One algorithm (ES256) and one form of header: what was not written by a TokenSigner with the same
// key is refused before anything in it is parsed. Whether the account still exists is for others.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace hearth::pki {

// 256 random bits as text.
std::string random_token();

// An object by name; the uid tells whether it is still the same one.
struct ObjectId {
  std::string name;
  std::string uid;

  bool operator==(const ObjectId&) const = default;
};

struct Claims {
  std::string issuer;
  std::vector<std::string> audiences;
  std::string ns;
  ObjectId account;
  std::optional<ObjectId> pod;   // the token ends with it
  std::optional<ObjectId> node;  // where that pod runs
  std::string id;                // differs from token to token
  Time issued;
  Time expires;

  // "system:serviceaccount:NS:NAME".
  std::string subject() const;
};

// Longer ones are refused unread. Ours have some 900 bytes.
inline constexpr std::size_t kMostToken = 8 << 10;

// Immutable and thread-safe.
class TokenSigner {
 public:
  // `key` is PEM; throws Error(invalid).
  TokenSigner(std::string_view key, std::string issuer);
  TokenSigner(const TokenSigner&) = delete;
  TokenSigner& operator=(const TokenSigner&) = delete;
  ~TokenSigner();

  // `issuer`, `id` and whole seconds of the times are filled in.
  std::string sign(Claims claims) const;

  // The claims of a token that this key signed for this issuer and that is valid now; nothing for
  // anything else.
  std::optional<Claims> verify(std::string_view token, Time now) const;

  const std::string& issuer() const;
  // The public key as PEM.
  std::string public_key() const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

// The signer whose key is sa.key in `folder`, which is made if it is not there.
std::unique_ptr<TokenSigner> load_token_signer(const std::string& folder, std::string issuer);

// The body of a token; nothing for text that a signer does not write. For verify() and its fuzzer.
std::optional<Claims> parse_claims(std::string_view json);

}  // namespace hearth::pki
