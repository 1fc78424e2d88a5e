#include <array>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/error.h"
#include "pki/crypto_internal.h"

namespace hearth::pki {
namespace {

using Bio = std::unique_ptr<BIO, FreedBy<BIO_free_all>>;

Bio memory_writer() {
  Bio bio(BIO_new(BIO_s_mem()));
  require(bio != nullptr, "allocate memory");
  return bio;
}

Bio memory_reader(std::string_view text) {
  Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  require(bio != nullptr, "allocate memory");
  return bio;
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long length = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(length)};
}

bool is_p256(EVP_PKEY* key) {
  std::array<char, 64> group{};
  std::size_t length = 0;
  return EVP_PKEY_get_group_name(key, group.data(), group.size(), &length) == 1 &&
         std::string_view(group.data(), length) == "prime256v1";
}

// A key with a passphrase must not make us ask for it on a terminal.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

}  // namespace

void throw_crypto(std::string_view what) {
  std::array<char, 256> reason{};
  ERR_error_string_n(ERR_get_error(), reason.data(), reason.size());
  ERR_clear_error();
  fail(Code::internal, "cannot {}: {}", what, reason.data());
}

void require(bool holds, std::string_view what) {
  if (!holds) throw_crypto(what);
}

Key make_key() {
  Key key(EVP_EC_gen("P-256"));
  require(key != nullptr, "make a key");
  return key;
}

std::string key_text(EVP_PKEY* key) {
  const Bio bio = memory_writer();
  require(PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
          "write a key");
  return text_of(bio.get());
}

std::string certificate_text(X509* certificate) {
  const Bio bio = memory_writer();
  require(PEM_write_bio_X509(bio.get(), certificate) == 1, "write a certificate");
  return text_of(bio.get());
}

Key parse_key(std::string_view pem, std::string_view file) {
  const Bio bio = memory_reader(pem);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (!key) fail(Code::invalid, "'{}' holds no private key", file);
  if (!is_p256(key.get())) fail(Code::invalid, "the key in '{}' is not ECDSA on P-256", file);
  return key;
}

Certificate parse_certificate(std::string_view pem, std::string_view file) {
  const Bio bio = memory_reader(pem);
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (!certificate) fail(Code::invalid, "'{}' holds no certificate", file);
  return certificate;
}

}  // namespace hearth::pki
