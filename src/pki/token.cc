#include "pki/token.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/id.h"
#include "model/json.h"
#include "pki/crypto_internal.h"
#include "pki/folder_internal.h"

namespace hearth::pki {
namespace {

using model::Json;
using model::JsonArray;
using model::JsonObject;
using Digest = std::unique_ptr<EVP_MD_CTX, FreedBy<EVP_MD_CTX_free>>;
using Signature = std::unique_ptr<ECDSA_SIG, FreedBy<ECDSA_SIG_free>>;
using Bio = std::unique_ptr<BIO, FreedBy<BIO_free_all>>;

constexpr const char* kKeyFile = "sa.key";
// The two halves of a signature on P-256.
constexpr std::size_t kHalf = 32;
constexpr std::string_view kSubjectPrefix = "system:serviceaccount:";
// A token of the future is one of a clock that was set back by this much at most.
constexpr Duration kLeeway = std::chrono::seconds(60);

// Base64 of RFC 7515 section 2: the alphabet for URLs, no padding.
std::string to_segment(std::string_view bytes) {
  std::string text = base64_encode(bytes);
  while (text.ends_with('=')) text.pop_back();
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

// Only text that to_segment() writes: no token has two spellings.
std::optional<std::string> from_segment(std::string_view text) {
  auto bytes = base64_decode(text);
  if (!bytes || to_segment(*bytes) != text) return std::nullopt;
  return bytes;
}

std::string public_key_text(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  require(bio != nullptr && PEM_write_bio_PUBKEY(bio.get(), key) == 1, "write a public key");
  char* data = nullptr;
  const long length = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(length)};
}

// Tells keys apart for people who look into a token; nothing here trusts it.
std::string key_id(std::string_view public_key) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned length = 0;
  require(EVP_Digest(public_key.data(), public_key.size(), hash.data(), &length, EVP_sha256(),
                     nullptr) == 1,
          "hash a key");
  return to_segment({reinterpret_cast<const char*>(hash.data()), length});
}

// OpenSSL has signatures as ASN.1; tokens have the two numbers one behind the other (RFC 7518 3.4).
std::string sign_bytes(EVP_PKEY* key, std::string_view text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  const Digest digest(EVP_MD_CTX_new());
  std::array<unsigned char, 128> asn1{};
  std::size_t length = asn1.size();
  require(digest != nullptr &&
              EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
              EVP_DigestSign(digest.get(), asn1.data(), &length, bytes, text.size()) == 1,
          "sign a token");
  const unsigned char* at = asn1.data();
  const Signature signature(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(length)));
  std::string raw(2 * kHalf, '\0');
  auto* out = reinterpret_cast<unsigned char*>(raw.data());
  require(signature != nullptr &&
              BN_bn2binpad(ECDSA_SIG_get0_r(signature.get()), out, kHalf) == kHalf &&
              BN_bn2binpad(ECDSA_SIG_get0_s(signature.get()), out + kHalf, kHalf) == kHalf,
          "sign a token");
  return raw;
}

std::string to_asn1(std::string_view raw) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(raw.data());
  BIGNUM* r = BN_bin2bn(bytes, kHalf, nullptr);
  BIGNUM* s = BN_bin2bn(bytes + kHalf, kHalf, nullptr);
  const Signature signature(ECDSA_SIG_new());
  if (!signature || ECDSA_SIG_set0(signature.get(), r, s) != 1) {
    BN_free(r);
    BN_free(s);
    throw_crypto("read a signature");
  }
  unsigned char* asn1 = nullptr;
  const int length = i2d_ECDSA_SIG(signature.get(), &asn1);
  require(length > 0, "read a signature");
  std::string text(reinterpret_cast<char*>(asn1), static_cast<std::size_t>(length));
  OPENSSL_free(asn1);
  return text;
}

bool has_signature(EVP_PKEY* key, std::string_view text, std::string_view raw) {
  if (raw.size() != 2 * kHalf) return false;
  const std::string asn1 = to_asn1(raw);
  const Digest digest(EVP_MD_CTX_new());
  const bool holds =
      digest != nullptr &&
      EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
      EVP_DigestVerify(digest.get(), reinterpret_cast<const unsigned char*>(asn1.data()),
                       asn1.size(), reinterpret_cast<const unsigned char*>(text.data()),
                       text.size()) == 1;
  ERR_clear_error();
  return holds;
}

std::int64_t to_seconds(Time time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

// Nothing for times that Time cannot hold.
std::optional<Time> time_at(const Json& json, std::string_view name) {
  constexpr std::int64_t kMost = 9'000'000'000;
  const auto seconds = model::number_at(json, {name});
  if (!seconds || *seconds < 0 || *seconds > kMost) return std::nullopt;
  return Time(std::chrono::seconds(*seconds));
}

JsonObject to_json(const ObjectId& object) {
  return {{"name", object.name}, {"uid", object.uid}};
}

std::optional<ObjectId> object_id(const Json& kubernetes, std::string_view name) {
  const Json* found = model::find(kubernetes, {name});
  if (found == nullptr) return std::nullopt;
  return ObjectId{std::string(model::text_at(*found, {"name"})),
                  std::string(model::text_at(*found, {"uid"}))};
}

std::string claims_text(const Claims& claims) {
  JsonArray audiences;
  for (const std::string& audience : claims.audiences) audiences.emplace_back(audience);
  JsonObject kubernetes{{"namespace", claims.ns}};
  if (claims.node) kubernetes["node"] = to_json(*claims.node);
  if (claims.pod) kubernetes["pod"] = to_json(*claims.pod);
  kubernetes["serviceaccount"] = to_json(claims.account);
  JsonObject json{{"aud", std::move(audiences)},
                  {"exp", to_seconds(claims.expires)},
                  {"iat", to_seconds(claims.issued)},
                  {"iss", claims.issuer},
                  {"jti", claims.id},
                  {"kubernetes.io", std::move(kubernetes)},
                  {"nbf", to_seconds(claims.issued)},
                  {"sub", claims.subject()}};
  return model::to_text(json);
}

// "8-4-4-4-12" of random hexadecimal.
std::string random_id() {
  std::string hex = random_hex(16);
  for (const std::size_t at : {8U, 13U, 18U, 23U}) hex.insert(at, 1, '-');
  return hex;
}

bool read_audiences(const Json& json, std::vector<std::string>& audiences) {
  const JsonArray* listed = model::array_at(json, {"aud"});
  if (listed == nullptr) return false;
  for (const Json& audience : *listed) {
    if (!audience.is_string()) return false;
    audiences.emplace_back(audience.get_string());
  }
  return true;
}

}  // namespace

std::string random_token() {
  return random_hex(32);
}

std::string Claims::subject() const {
  return fmt::format("{}{}:{}", kSubjectPrefix, ns, account.name);
}

std::optional<Claims> parse_claims(std::string_view text) {
  Json json;
  try {
    model::ParsedJson parsed = model::parse_json(text);
    if (!parsed.duplicates.empty()) return std::nullopt;
    json = std::move(parsed.value);
  } catch (const Error&) {
    return std::nullopt;
  }
  const Json* kubernetes = model::find(json, {"kubernetes.io"});
  const auto issued = time_at(json, "iat");
  const auto expires = time_at(json, "exp");
  if (kubernetes == nullptr || !issued || !expires) return std::nullopt;
  Claims claims;
  if (!read_audiences(json, claims.audiences)) return std::nullopt;
  claims.issuer = model::text_at(json, {"iss"});
  claims.id = model::text_at(json, {"jti"});
  claims.issued = *issued;
  claims.expires = *expires;
  claims.ns = model::text_at(*kubernetes, {"namespace"});
  claims.account = object_id(*kubernetes, "serviceaccount").value_or(ObjectId());
  claims.pod = object_id(*kubernetes, "pod");
  claims.node = object_id(*kubernetes, "node");
  const bool named = !claims.ns.empty() && !claims.account.name.empty();
  if (!named || model::text_at(json, {"sub"}) != claims.subject()) return std::nullopt;
  return claims;
}

struct TokenSigner::State {
  Key key;
  std::string issuer;
  std::string public_key;
  std::string head;  // of every token: the header and a dot
};

TokenSigner::TokenSigner(std::string_view key, std::string issuer) {
  auto state = std::make_unique<State>();
  state->key = parse_key(key, kKeyFile);
  state->issuer = std::move(issuer);
  state->public_key = public_key_text(state->key.get());
  const JsonObject header{{"alg", "ES256"}, {"kid", key_id(state->public_key)}, {"typ", "JWT"}};
  state->head = to_segment(model::to_text(header)) + ".";
  state_ = std::move(state);
}

TokenSigner::~TokenSigner() = default;

const std::string& TokenSigner::issuer() const {
  return state_->issuer;
}
std::string TokenSigner::public_key() const {
  return state_->public_key;
}

std::string TokenSigner::sign(Claims claims) const {
  claims.issuer = state_->issuer;
  claims.id = random_id();
  std::string token = state_->head + to_segment(claims_text(claims));
  const std::string signature = to_segment(sign_bytes(state_->key.get(), token));
  token.append(".").append(signature);
  // What verify() would refuse shall not leave the house.
  if (token.size() > kMostToken) fail(Code::invalid, "the token would be too long");
  return token;
}

std::optional<Claims> TokenSigner::verify(std::string_view token, Time now) const {
  if (token.size() > kMostToken || !token.starts_with(state_->head)) return std::nullopt;
  const std::size_t dot = token.rfind('.');
  if (dot < state_->head.size()) return std::nullopt;
  const auto signature = from_segment(token.substr(dot + 1));
  if (!signature || !has_signature(state_->key.get(), token.substr(0, dot), *signature))
    return std::nullopt;
  const auto body = from_segment(token.substr(state_->head.size(), dot - state_->head.size()));
  if (!body) return std::nullopt;
  auto claims = parse_claims(*body);
  if (!claims || claims->issuer != state_->issuer) return std::nullopt;
  if (claims->expires <= now || claims->issued > now + kLeeway) return std::nullopt;
  return claims;
}

std::unique_ptr<TokenSigner> load_token_signer(const std::string& path, std::string issuer) {
  const Folder folder(path);
  std::optional<std::string> key = folder.find(kKeyFile);
  if (!key) {
    key = key_text(make_key().get());
    folder.keep_durably(kKeyFile, *key);
  }
  return std::make_unique<TokenSigner>(*key, std::move(issuer));
}

}  // namespace hearth::pki
