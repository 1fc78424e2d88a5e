#include <array>
#include <memory>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

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

// Looked up once: OpenSSL takes longer to find an algorithm by its name than to run it over a key.
const EVP_MD* sha256() {
  static const EVP_MD* const kFound = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return kFound;
}

// An HMAC that remembers its last key: mostly there is one.
class KeyedHash {
 public:
  KeyedHash() {
    const std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> mac(
        EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr), &EVP_MAC_free);
    if (mac) context_.reset(EVP_MAC_CTX_new(mac.get()));
  }

  Digest sum(std::string_view key, std::string_view text) {
    Digest digest{};
    std::size_t length = 0;
    if (!context_ || !begin(key) ||
        EVP_MAC_update(context_.get(), bytes_of(text), text.size()) != 1 ||
        EVP_MAC_final(context_.get(), digest.data(), &length, digest.size()) != 1 ||
        length != digest.size())
      fail(Code::internal, "cannot compute an HMAC");
    return digest;
  }

 private:
  bool begin(std::string_view key) {
    if (has_key_ && key == key_) return EVP_MAC_init(context_.get(), nullptr, 0, nullptr) == 1;
    std::string name = "SHA256";
    const std::array params{
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name.data(), name.size()),
        OSSL_PARAM_construct_end()};
    key_ = key;
    has_key_ = EVP_MAC_init(context_.get(), bytes_of(key), key.size(), params.data()) == 1;
    return has_key_;
  }

  std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context_{nullptr, &EVP_MAC_CTX_free};
  std::string key_;
  bool has_key_ = false;
};

}  // namespace

std::string sha256_hex(std::string_view text) {
  Digest digest{};
  unsigned length = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &length, sha256(), nullptr) != 1 ||
      length != digest.size())
    fail(Code::internal, "cannot compute a SHA-256");
  return hex(digest);
}

std::string hmac_sha256_hex(std::string_view key, std::string_view text) {
  static thread_local KeyedHash hash;
  return hex(hash.sum(key, text));
}

}  // namespace hearth::tenants
