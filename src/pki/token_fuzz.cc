// Tokens: nothing that the signer did not write verifies, and claims that parse say who they are
// of.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "pki/token.h"

namespace hearth::pki {
namespace {

// Made for this file.
constexpr std::string_view kKey = R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgDAkSVo4zc2jWXSRU
ICq8aGv+0mLoBxdgLs1808Tl1PChRANCAASsRiCnrXW0ngd2+YEZaWDtXJemiCcL
OZIs/n/eUPGzoeEFlBMuVVCoNNdw8EQJW4U/AnRIr2wFjS4zpFRNiGzm
-----END PRIVATE KEY-----
)";

constexpr Time kNow = Time(std::chrono::seconds(1'800'000'000));

void check(bool holds) {
  if (!holds) std::abort();
}

void check_claims(const Claims& claims) {
  check(!claims.ns.empty() && !claims.account.name.empty());
  check(claims.issued.time_since_epoch().count() >= 0);
}

// Bytes at hand changed in a good token.
void tamper(std::string_view bytes) {
  static const TokenSigner signer(kKey, "fuzz");
  static const std::string good = signer.sign({.audiences = {"fuzz"},
                                               .ns = "default",
                                               .account = {"builder", "uid-1"},
                                               .issued = kNow,
                                               .expires = kNow + std::chrono::hours(1)});
  check(signer.verify(good, kNow).has_value());
  check(!signer.verify(bytes, kNow));
  if (bytes.size() < 3) return;
  std::string bad = good;
  const std::size_t at =
      (static_cast<unsigned char>(bytes[0]) << 8U) + static_cast<unsigned char>(bytes[1]);
  bad.replace(at % bad.size(), bytes.size() - 2, bytes.substr(2));
  check(bad == good || !signer.verify(bad, kNow));
}

}  // namespace
}  // namespace hearth::pki

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto claims = hearth::pki::parse_claims(text)) hearth::pki::check_claims(*claims);
  hearth::pki::tamper(text);
  return 0;
}
