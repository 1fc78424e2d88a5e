#include <algorithm>

#include "base/error.h"
#include "pki/signer_internal.h"

namespace hearth::pki {
namespace {

using namespace std::chrono_literals;

constexpr Duration kYear = 365 * 24h;
// Authorities outlive what they sign; a server may run for a year without a restart.
constexpr Duration kAuthorityLifetime = 10 * kYear;
constexpr Duration kAuthorityRenewal = 3 * kYear;
constexpr Duration kServerLifetime = 2 * kYear;
constexpr Duration kServerRenewal = kYear;
// Clocks of clients may be behind ours.
constexpr Duration kSkew = 5min;

}  // namespace

Identity Signer::sign(CertificateWords words, Time now) const {
  const Key fresh = make_key();
  words.from = now - kSkew;
  // What outlived its authority would be refused anyway.
  words.until = std::min(words.until, expiry(certificate.get()));
  const Certificate made = make_certificate(words, fresh.get(), certificate.get(), key.get());
  return {certificate_text(made.get()), key_text(fresh.get())};
}

Identity Signer::sign_server(const std::string& common_name, std::vector<std::string> names,
                             Time now) const {
  return sign({.common_name = common_name,
               .alternative_names = std::move(names),
               .usage = Usage::server,
               .until = now + kServerLifetime},
              now);
}

bool Signer::is_good_server(const Identity& server, const std::vector<std::string>& names,
                            Time now) const {
  try {
    const Certificate kept = parse_certificate(server.certificate, "server.crt");
    const Key kept_key = parse_key(server.key, "server.key");
    return X509_check_private_key(kept.get(), kept_key.get()) == 1 &&
           X509_verify(kept.get(), key.get()) == 1 && alternative_names(kept.get()) == names &&
           expiry(kept.get()) - now > kServerRenewal;
  } catch (const Error&) {
    return false;  // unreadable: as good as not there
  }
}

Certificate make_authority_certificate(EVP_PKEY* key, Time now) {
  return make_certificate({.common_name = "hearth-ca",
                           .usage = Usage::authority,
                           .from = now - kSkew,
                           .until = now + kAuthorityLifetime},
                          key, nullptr, key);
}

bool is_authority_near_its_end(X509* certificate, Time now) {
  return expiry(certificate) - now <= kAuthorityRenewal;
}

std::vector<std::string> alternatives(const std::vector<std::string>& names) {
  std::vector<std::string> spelled;
  for (const std::string& name : names) spelled.push_back(alternative_name(name));
  std::ranges::sort(spelled);
  spelled.erase(std::ranges::unique(spelled).begin(), spelled.end());
  return spelled;
}

}  // namespace hearth::pki
