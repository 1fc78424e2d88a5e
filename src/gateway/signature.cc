#include "gateway/signature.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <openssl/sha.h>

#include "base/base64.h"
#include "base/error.h"
#include "http/head.h"
#include "http/target.h"

namespace hearth::gateway {
namespace {

constexpr std::string_view kVersion = "v1_";

std::string parameter(std::string_view query, std::string_view name) {
  return http::find_query_parameter(query, name).value_or("");
}

}  // namespace

bool has_signature(std::string_view query) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    if (pair.substr(0, pair.find('=')) == "signature") return true;
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
  }
  return false;
}

std::optional<Signature> Signature::find(std::string_view method, std::string_view query) {
  if (!has_signature(query)) return std::nullopt;
  Signature found;
  try {
    const std::string text = parameter(query, "signature");
    if (!text.starts_with(kVersion)) return std::nullopt;
    const auto digest = base64_decode(std::string_view(text).substr(kVersion.size()));
    if (!digest || digest->size() != SHA256_DIGEST_LENGTH) return std::nullopt;
    found.digest_ = *digest;
    const std::string_view operation = method == "GET" || method == "HEAD" ? "read" : "write";
    found.before_ =
        fmt::format("{}:{}:{}:", parameter(query, "path"), operation, parameter(query, "username"));
    found.after_ = parameter(query, "signature_expiration");
    if (!found.after_.empty()) found.after_.insert(0, 1, ':');
  } catch (const Error&) {
    return std::nullopt;  // a query that does not decode is nobody's
  }
  return found;
}

bool Signature::is_of(std::string_view token) const {
  std::string text;
  text.reserve(before_.size() + token.size() + after_.size());
  text.append(before_).append(token).append(after_);
  std::array<char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return http::equal_constant_time({digest.data(), digest.size()}, digest_);
}

}  // namespace hearth::gateway
