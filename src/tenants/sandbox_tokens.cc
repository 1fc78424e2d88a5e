#include "tenants/sandbox_tokens.h"

#include <utility>

#include "base/base64.h"
#include "base/error.h"
#include "base/id.h"
#include "client/kinds.h"
#include "model/front_door.h"
#include "tenants/digest_internal.h"
#include "tenants/system_internal.h"

namespace hearth::tenants {
namespace {

constexpr std::size_t kSeedBytes = 32;
constexpr std::string_view kSeedSecret = "sandbox-token-seed";
constexpr std::string_view kSeedMember = "seed";

// As many random bits as a seed of bytes, in a form that people can copy.
std::string new_seed() {
  return random_hex(kSeedBytes);
}

model::Json secret_with(const std::string& seed) {
  return model::JsonObject{{"apiVersion", "v1"},
                           {"kind", "Secret"},
                           {"type", "hearth.dev/token-seed"},
                           {"immutable", true},
                           {"metadata", model::JsonObject{{"name", kSeedSecret},
                                                          {"namespace", model::kSystemNamespace}}},
                           {"data", model::JsonObject{{kSeedMember, base64_encode(seed)}}}};
}

std::string seed_in(const model::Json& secret) {
  const auto seed = base64_decode(model::text_at(secret, {"data", kSeedMember}));
  if (!seed || seed->size() < kSeedBytes)
    fail(Code::invalid, "the secret '{}/{}' has no '{}' of at least {} bytes",
         model::kSystemNamespace, kSeedSecret, kSeedMember, kSeedBytes);
  return *seed;
}

}  // namespace

SandboxTokens::SandboxTokens(std::string seed) : seed_(std::move(seed)) {
  if (seed_.size() < kSeedBytes)
    fail(Code::invalid, "a seed of tokens has at least {} bytes, this one {}", kSeedBytes,
         seed_.size());
}

std::string SandboxTokens::envd_token(const model::Key& sandbox) const {
  return token("envd", sandbox);
}

std::string SandboxTokens::traffic_token(const model::Key& sandbox) const {
  return token("traffic", sandbox);
}

std::string SandboxTokens::token(std::string_view purpose, const model::Key& sandbox) const {
  std::string text(purpose);
  text += ':';
  text += sandbox.text();
  return hmac_sha256_hex(seed_, text);
}

std::string load_token_seed(client::Client& client) {
  if (const auto kept = client.find(client::kSecrets, model::kSystemNamespace, kSeedSecret))
    return seed_in(*kept);
  if (const auto made = create_in_system(client, client::kSecrets, secret_with(new_seed())))
    return seed_in(*made);
  // Somebody was faster: theirs counts.
  return seed_in(client.get(client::kSecrets, model::kSystemNamespace, kSeedSecret));
}

}  // namespace hearth::tenants
