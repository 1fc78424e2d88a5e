// SHA-256 and HMAC-SHA-256, as hexadecimal text.
#pragma once

#include <string>
#include <string_view>

namespace hearth::tenants {

std::string sha256_hex(std::string_view text);
std::string hmac_sha256_hex(std::string_view key, std::string_view text);

}  // namespace hearth::tenants
