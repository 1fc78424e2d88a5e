#include "envd/access.h"

#include <array>

#include <nettle/sha2.h>

#include "base/base64.h"
#include "envd/connect.h"
#include "http/head.h"
#include "http/target.h"

namespace hearth::envd {
namespace {

[[noreturn]] void refuse(const char* why) {
  throw RestError(401, why);
}

std::string parameter(const http::Request& request, std::string_view name) {
  return http::find_query_parameter(request.query, name).value_or("");
}

}  // namespace

std::string sign(std::string_view path, std::string_view operation, std::string_view user,
                 std::string_view token, std::string_view expiration) {
  std::string text = fmt::format("{}:{}:{}:{}", path, operation, user, token);
  if (!expiration.empty()) text += fmt::format(":{}", expiration);
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, text.size(), reinterpret_cast<const std::uint8_t*>(text.data()));
  std::array<char, SHA256_DIGEST_SIZE> digest{};
  sha256_digest(&context, digest.size(), reinterpret_cast<std::uint8_t*>(digest.data()));
  std::string signature = "v1_" + base64_encode({digest.data(), digest.size()});
  while (signature.ends_with('=')) signature.pop_back();
  return signature;
}

void check_token(const http::Request& request, const std::string& token) {
  if (token.empty() || http::equal_constant_time(request.headers.value("X-Access-Token"), token))
    return;
  refuse("unauthorized access, please provide a valid access token or method signing if supported");
}

void check_file_access(const http::Request& request, const std::string& token,
                       std::string_view operation, Time now) {
  if (token.empty()) return;
  if (const std::string* header = request.headers.find("X-Access-Token")) {
    if (http::equal_constant_time(*header, token)) return;
    refuse("access token present in header but does not match");
  }
  const auto signature = http::find_query_parameter(request.query, "signature");
  if (!signature) refuse("missing signature query parameter");
  const std::string expiration = parameter(request, "signature_expiration");
  const std::string expected = sign(parameter(request, "path"), operation,
                                    parameter(request, "username"), token, expiration);
  if (!http::equal_constant_time(*signature, expected)) refuse("invalid signature");
  if (expiration.empty()) return;
  const auto seconds = http::parse_number(expiration);
  if (!seconds) refuse("invalid signature");
  const auto now_seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  if (std::cmp_less(*seconds, now_seconds)) refuse("signature is already expired");
}

guest::User find_user(const std::string& name, const std::string& standard) {
  const std::string& wanted = name.empty() ? standard : name;
  try {
    guest::User user = guest::find_user_here(wanted);
    if (name.empty() || user.name == name) return user;
  } catch (const Error&) {
    // Said below, in the words that clients know.
  }
  throw RpcError(RpcCode::unauthenticated, fmt::format("invalid username: '{}'", wanted));
}

}  // namespace hearth::envd
