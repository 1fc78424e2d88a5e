// A key as the Secret that stands for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tenants/api_keys.h"

namespace hearth::tenants {

// "api-key-ID".
std::string secret_name_of(std::string_view id);
// Of the hash of a key; of a key itself.
std::string id_of_hash(std::string_view hash);
bool is_key_text(std::string_view key);

model::Json key_secret(std::string_view key, const NewKey& wanted);

struct KeptKey {
  KeyInfo info;
  std::string hash;  // 64 hexadecimal digits
};
// Nothing for a Secret that is no key: another type, a hash that is none or not the name's.
std::optional<KeptKey> parse_key_secret(const model::Json& secret);

void require_key_name(const std::string& name);
inline constexpr std::string_view kKeyNameAnnotation = "hearth.dev/key-name";

}  // namespace hearth::tenants
