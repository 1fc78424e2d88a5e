// Certificates: what is in one, made and read back.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "pki/crypto_internal.h"

namespace hearth::pki {

enum class Usage { authority, server, client };

struct CertificateWords {
  std::string common_name;
  std::vector<std::string> organisations;
  // As OpenSSL writes them: "DNS:localhost", "IP:127.0.0.1".
  std::vector<std::string> alternative_names;
  Usage usage = Usage::client;
  Time from;
  Time until;
};

// For `key`, signed by `issuer_key` in the name of `issuer`; null: by itself.
Certificate make_certificate(const CertificateWords& words, EVP_PKEY* key, X509* issuer,
                             EVP_PKEY* issuer_key);

// "DNS:..." ("*." first stands for any one label) or "IP:..." with the address in its usual
// spelling. Error(invalid) for neither.
std::string alternative_name(const std::string& name);
// Those of a certificate, sorted.
std::vector<std::string> alternative_names(X509* certificate);
Time expiry(X509* certificate);

}  // namespace hearth::pki
