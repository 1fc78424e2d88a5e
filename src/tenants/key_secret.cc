#include <algorithm>

#include "base/base64.h"
#include "base/error.h"
#include "base/time_text.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "tenants/digest_internal.h"
#include "tenants/key_secret_internal.h"

namespace hearth::tenants {
namespace {

using model::Json;
using model::JsonObject;

constexpr std::string_view kNamePrefix = "api-key-";
constexpr std::string_view kHashMember = "sha256";
constexpr std::string_view kExpiresAnnotation = "hearth.dev/expires-at";
// Some characters of the key, to tell one from another: 24 bits of 160.
constexpr std::string_view kFirstAnnotation = "hearth.dev/key-first";
constexpr std::string_view kLastAnnotation = "hearth.dev/key-last";
constexpr std::size_t kIdDigits = 16;
constexpr std::size_t kHashDigits = 64;
constexpr std::size_t kFirstDigits = 2;
constexpr std::size_t kLastDigits = 4;
constexpr std::size_t kMostName = 128;

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A date that nobody can read has passed: a key that should end somehow must not live for ever.
std::optional<Time> expiry_of(const Json& secret) {
  const std::string_view text = model::annotation_of(secret, kExpiresAnnotation);
  if (text.empty()) return std::nullopt;
  return parse_rfc3339(text).value_or(Time{});
}

}  // namespace

std::string secret_name_of(std::string_view id) {
  return std::string(kNamePrefix).append(id);
}

std::string id_of_hash(std::string_view hash) {
  return std::string(hash.substr(0, kIdDigits));
}

bool is_key_text(std::string_view key) {
  return key.size() == kKeyPrefix.size() + kKeyDigits && key.starts_with(kKeyPrefix) &&
         is_hex(key.substr(kKeyPrefix.size()));
}

Json key_secret(std::string_view key, const NewKey& wanted) {
  const std::string hash = sha256_hex(key);
  const std::string_view digits = key.substr(kKeyPrefix.size());
  JsonObject annotations = annotations_of(wanted.limits);
  annotations[kKeyNameAnnotation] = wanted.name;
  annotations[kFirstAnnotation] = digits.substr(0, kFirstDigits);
  annotations[kLastAnnotation] = digits.substr(digits.size() - kLastDigits);
  if (wanted.expires) annotations[kExpiresAnnotation] = format_rfc3339(*wanted.expires);
  return JsonObject{
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"type", model::kApiKeyType},
      {"immutable", true},
      {"metadata", JsonObject{{"name", secret_name_of(id_of_hash(hash))},
                              {"namespace", model::kSystemNamespace},
                              {"labels", JsonObject{{model::kTeamLabel, wanted.team}}},
                              {"annotations", std::move(annotations)}}},
      {"data", JsonObject{{kHashMember, base64_encode(hash)}}}};
}

std::optional<KeptKey> parse_key_secret(const Json& secret) {
  if (model::text_at(secret, {"type"}) != model::kApiKeyType || model::is_deleting(secret))
    return std::nullopt;
  const auto hash = base64_decode(model::text_at(secret, {"data", kHashMember}));
  if (!hash || hash->size() != kHashDigits || !is_hex(*hash) ||
      model::name_of(secret) != secret_name_of(id_of_hash(*hash)))
    return std::nullopt;
  return KeptKey{.info = {.id = id_of_hash(*hash),
                          .name = std::string(model::annotation_of(secret, kKeyNameAnnotation)),
                          .team = std::string(model::label_of(secret, model::kTeamLabel)),
                          .first = std::string(model::annotation_of(secret, kFirstAnnotation)),
                          .last = std::string(model::annotation_of(secret, kLastAnnotation)),
                          .limits = limits_on(secret),
                          .created = model::created_at(secret),
                          .expires = expiry_of(secret)},
                 .hash = *hash};
}

void require_key_name(const std::string& name) {
  const bool is_clean = std::ranges::none_of(
      name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (name.empty() || name.size() > kMostName || !is_clean)
    fail(Code::invalid, "a key's name has 1 to {} bytes and no control characters", kMostName);
}

}  // namespace hearth::tenants
