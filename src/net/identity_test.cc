#include <atomic>
#include <memory>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/error.h"
#include "net/testing_internal.h"

namespace hearth::net {
namespace {

template <typename T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* it) const { kFree(it); }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509, X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION, X509_EXTENSION_free>>;
using Bio = std::unique_ptr<BIO, Freed<BIO, BIO_free_all>>;

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long length = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(length)};
}

void extend(X509* certificate, int id, const std::string& value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, id, value.c_str()));
  if (!extension) fail(Code::internal, "bad extension '{}'", value);
  X509_add_ext(certificate, extension.get(), -1);
}

void add_name(X509* certificate, const char* kind, const std::string& name) {
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), kind, MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.data()),
                             static_cast<int>(name.size()), -1, 0);
}

Certificate unsigned_certificate(const std::string& common_name, EVP_PKEY* key) {
  static std::atomic<long> serial = 1;
  constexpr long kDay = 24L * 60 * 60;
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kDay);
  X509_set_pubkey(certificate.get(), key);
  add_name(certificate.get(), "CN", common_name);
  return certificate;
}

Key read_key(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return Key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
}

Certificate read_certificate(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return Certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

}  // namespace

Identity make_identity(const std::string& common_name, const std::string& subject_alt,
                       const Identity* signer, const std::vector<std::string>& groups,
                       const std::string& extended_usage) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate = unsigned_certificate(common_name, key.get());
  for (const std::string& group : groups) add_name(certificate.get(), "O", group);
  if (!extended_usage.empty()) extend(certificate.get(), NID_ext_key_usage, extended_usage);
  if (!subject_alt.empty()) extend(certificate.get(), NID_subject_alt_name, subject_alt);
  if (signer != nullptr) {
    const Certificate issuer = read_certificate(signer->certificate.text);
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer.get()));
    X509_sign(certificate.get(), read_key(signer->key.text).get(), EVP_sha256());
  } else {
    extend(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get()));
    X509_sign(certificate.get(), key.get(), EVP_sha256());
  }
  const Bio certificate_text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(certificate_text.get(), certificate.get());
  const Bio key_text(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {{.text = text_of(certificate_text.get())}, {.text = text_of(key_text.get())}};
}

}  // namespace hearth::net
