// The plain functions, not EVP: those read configuration files, load modules, and link megabytes of
// algorithms into a program that must stay small and works without a file system.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "unpack/sha256.h"

#include <array>

#include <fmt/format.h>
#include <openssl/sha.h>

namespace hearth::unpack {

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  SHA256_Init(&state_->context);
}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const char> bytes) {
  SHA256_Update(&state_->context, bytes.data(), bytes.size());
}

std::string Sha256::digest() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> bytes;
  SHA256_Final(bytes.data(), &state_->context);
  std::string text = "sha256:";
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace hearth::unpack
