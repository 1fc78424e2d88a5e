// An authority in memory: its key, its certificate, and what it signs. Where they are kept is
// somebody else's.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "pki/authority.h"
#include "pki/certificate_internal.h"
#include "pki/crypto_internal.h"

namespace hearth::pki {

struct Signer {
  Key key;
  Certificate certificate;

  Identity sign(CertificateWords words, Time now) const;
  // For a server with these alternative names, as alternative_name() spells them.
  Identity sign_server(const std::string& common_name, std::vector<std::string> names,
                       Time now) const;
  // Whether we signed it, for just these (sorted) names, and it need not be renewed yet.
  bool is_good_server(const Identity& server, const std::vector<std::string>& names,
                      Time now) const;
};

Certificate make_authority_certificate(EVP_PKEY* key, Time now);
// Near its end one is made again. For the same key, so that those who trust the old one trust it
// as well.
bool is_authority_near_its_end(X509* certificate, Time now);

// As alternative_name() spells them, sorted, each once.
std::vector<std::string> alternatives(const std::vector<std::string>& names);

}  // namespace hearth::pki
