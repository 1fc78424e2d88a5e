#include "registry/digest.h"

#include <array>

#include <openssl/evp.h>

#include "base/error.h"

namespace hearth::registry {
namespace {

EVP_MD_CTX* context_of(void* pointer) {
  return static_cast<EVP_MD_CTX*>(pointer);
}

}  // namespace

void Sha256::Free::operator()(void* context) const {
  EVP_MD_CTX_free(context_of(context));
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_DigestInit_ex(context_of(context_.get()), EVP_sha256(), nullptr) != 1) {
    fail(Code::internal, "OpenSSL has no SHA-256");
  }
}

void Sha256::update(std::string_view bytes) {
  if (EVP_DigestUpdate(context_of(context_.get()), bytes.data(), bytes.size()) != 1) {
    fail(Code::internal, "OpenSSL cannot hash");
  }
}

std::string Sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  if (EVP_DigestFinal_ex(context_of(context_.get()), hash.data(), &size) != 1) {
    fail(Code::internal, "OpenSSL cannot hash");
  }
  std::string text = "sha256:";
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", hash[i]);
  return text;
}

std::string sha256_of(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

}  // namespace hearth::registry
