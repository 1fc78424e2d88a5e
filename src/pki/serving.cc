#include "pki/serving.h"

#include <optional>

#include "base/error.h"
#include "pki/signer_internal.h"

namespace hearth::pki {
namespace {

std::optional<Certificate> find_certificate(const std::string& text) {
  try {
    return parse_certificate(text, "ca.crt");
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Nothing where the key and the certificate do not belong together.
std::optional<Signer> find_signer(const Serving& kept) {
  auto certificate = find_certificate(kept.authority);
  if (!certificate) return std::nullopt;
  try {
    Key key = parse_key(kept.authority_key, "ca.key");
    if (X509_check_private_key(certificate->get(), key.get()) != 1) return std::nullopt;
    return Signer{std::move(key), *std::move(certificate)};
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

Serving renew_serving(const Serving& kept, const std::vector<std::string>& names, Time now) {
  const std::vector<std::string> spelled = alternatives(names);
  Serving result = kept;
  std::optional<Signer> signer = find_signer(kept);
  if (!signer) {
    Key key = make_key();
    Certificate certificate = make_authority_certificate(key.get(), now);
    signer = Signer{std::move(key), std::move(certificate)};
    result.authority = certificate_text(signer->certificate.get());
    result.authority_key = key_text(signer->key.get());
    if (const auto last = find_certificate(kept.authority))
      result.authority += certificate_text(last->get());
  } else if (is_authority_near_its_end(signer->certificate.get(), now)) {
    signer->certificate = make_authority_certificate(signer->key.get(), now);
    result.authority = certificate_text(signer->certificate.get());
  }
  if (!signer->is_good_server(kept.server, spelled, now))
    result.server = signer->sign_server(names.at(0), spelled, now);
  return result;
}

}  // namespace hearth::pki
