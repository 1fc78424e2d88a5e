#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/error.h"
#include "pki/certificate_internal.h"

namespace hearth::pki {
namespace {

using Extension = std::unique_ptr<X509_EXTENSION, FreedBy<X509_EXTENSION_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, FreedBy<GENERAL_NAMES_free>>;

std::time_t seconds(Time time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

// Directly as UTF-8: through OpenSSL's table of attributes a name could have 64 characters only,
// and the names of service accounts have more.
void add_name(X509_NAME* subject, int kind, const std::string& text) {
  require(X509_NAME_add_entry_by_NID(subject, kind, V_ASN1_UTF8STRING,
                                     reinterpret_cast<const unsigned char*>(text.data()),
                                     static_cast<int>(text.size()), -1, 0) == 1,
          "name a certificate");
}

void extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  require(extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1,
          "extend a certificate");
}

// 127 random bits: two certificates of one authority may not share a number (RFC 5280 4.1.2.2).
void set_random_serial(X509* certificate) {
  std::array<unsigned char, 16> bytes{};
  require(RAND_bytes(bytes.data(), bytes.size()) == 1, "find randomness");
  bytes[0] = (bytes[0] & 0x7f) | 0x40;
  ASN1_INTEGER* serial = X509_get_serialNumber(certificate);
  require(ASN1_STRING_set(serial, bytes.data(), bytes.size()) == 1, "number a certificate");
}

void add_extensions(const CertificateWords& words, X509* certificate, X509* issuer) {
  extend(certificate, issuer, NID_subject_key_identifier, "hash");
  if (words.usage == Usage::authority) {
    extend(certificate, issuer, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
    extend(certificate, issuer, NID_key_usage, "critical,keyCertSign,digitalSignature");
    return;
  }
  extend(certificate, issuer, NID_authority_key_identifier, "keyid:always");
  extend(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE");
  extend(certificate, issuer, NID_key_usage, "critical,digitalSignature");
  extend(certificate, issuer, NID_ext_key_usage,
         words.usage == Usage::server ? "serverAuth" : "clientAuth");
  if (!words.alternative_names.empty()) {
    extend(certificate, issuer, NID_subject_alt_name,
           fmt::format("{}", fmt::join(words.alternative_names, ",")));
  }
}

std::string address_text(int family, const void* bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family, bytes, text.data(), text.size());
  return text.data();
}

// A host name that cannot smuggle anything into the list of alternative names.
bool is_host_name(const std::string& name) {
  constexpr std::size_t kMost = 253;
  if (name.empty() || name.size() > kMost || name.front() == '.' || name.front() == '-')
    return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  });
}

std::string bytes_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

}  // namespace

Certificate make_certificate(const CertificateWords& words, EVP_PKEY* key, X509* issuer,
                             EVP_PKEY* issuer_key) {
  Certificate made(X509_new());
  require(made != nullptr, "allocate a certificate");
  X509* certificate = made.get();
  X509* signer = issuer == nullptr ? certificate : issuer;
  require(X509_set_version(certificate, X509_VERSION_3) == 1, "make a certificate");
  set_random_serial(certificate);
  require(ASN1_TIME_set(X509_getm_notBefore(certificate), seconds(words.from)) != nullptr &&
              ASN1_TIME_set(X509_getm_notAfter(certificate), seconds(words.until)) != nullptr,
          "date a certificate");
  X509_NAME* subject = X509_get_subject_name(certificate);
  for (const std::string& organisation : words.organisations)
    add_name(subject, NID_organizationName, organisation);
  add_name(subject, NID_commonName, words.common_name);
  require(X509_set_issuer_name(certificate, X509_get_subject_name(signer)) == 1 &&
              X509_set_pubkey(certificate, key) == 1,
          "make a certificate");
  add_extensions(words, certificate, signer);
  require(X509_sign(certificate, issuer_key, EVP_sha256()) > 0, "sign a certificate");
  return made;
}

std::string alternative_name(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  for (const int family : {AF_INET, AF_INET6}) {
    if (::inet_pton(family, name.c_str(), address.data()) == 1)
      return "IP:" + address_text(family, address.data());
  }
  const std::string named = name.starts_with("*.") ? name.substr(2) : name;
  if (!is_host_name(named)) fail(Code::invalid, "'{}' cannot be the name of a server", name);
  return "DNS:" + name;
}

std::vector<std::string> alternative_names(X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> found;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) found.push_back("DNS:" + bytes_of(name->d.dNSName));
    if (name->type == GEN_IPADD) {
      const std::string bytes = bytes_of(name->d.iPAddress);
      const int family = bytes.size() == sizeof(in_addr) ? AF_INET : AF_INET6;
      if (family == AF_INET || bytes.size() == sizeof(in6_addr))
        found.push_back("IP:" + address_text(family, bytes.data()));
    }
  }
  std::ranges::sort(found);
  return found;
}

Time expiry(X509* certificate) {
  std::tm parts{};
  require(ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &parts) == 1, "read a date");
  return Time(std::chrono::seconds(::timegm(&parts)));
}

}  // namespace hearth::pki
