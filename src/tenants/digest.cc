#include <array>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/error.h"
#include "tenants/digest_internal.h"

namespace hearth::tenants {
namespace {

using Digest = std::array<unsigned char, 32>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string hex(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

}  // namespace

std::string sha256_hex(std::string_view text) {
  Digest digest{};
  unsigned length = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1 ||
      length != digest.size())
    fail(Code::internal, "cannot compute a SHA-256");
  return hex(digest);
}

std::string hmac_sha256_hex(std::string_view key, std::string_view text) {
  Digest digest{};
  unsigned length = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes_of(text), text.size(),
           digest.data(), &length) == nullptr ||
      length != digest.size())
    fail(Code::internal, "cannot compute an HMAC");
  return hex(digest);
}

}  // namespace hearth::tenants
