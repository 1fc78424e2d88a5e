// What this room shares of OpenSSL: owned pointers, keys and certificates as PEM.
//
// One kind of key only: ECDSA on P-256, fast to make and known to every client.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <openssl/evp.h>
#include <openssl/x509.h>

namespace hearth::pki {

template <auto kFree>
struct FreedBy {
  template <typename T>
  void operator()(T* it) const {
    kFree(it);
  }
};
using Key = std::unique_ptr<EVP_PKEY, FreedBy<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, FreedBy<X509_free>>;

// Throws Error(internal) with `what` and OpenSSL's reason; never any key material.
[[noreturn]] void throw_crypto(std::string_view what);
void require(bool holds, std::string_view what);

Key make_key();
std::string key_text(EVP_PKEY* key);
std::string certificate_text(X509* certificate);

// Throw Error(invalid), naming `file`, for text that is none. A key must be ECDSA on P-256.
Key parse_key(std::string_view pem, std::string_view file);
Certificate parse_certificate(std::string_view pem, std::string_view file);

}  // namespace hearth::pki
