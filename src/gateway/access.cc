#include "gateway/access.h"

#include <algorithm>
#include <array>

#include "gateway/signature.h"
#include "http/target.h"

namespace hearth::gateway {
namespace {

using http::equal_constant_time;
using http::HeadView;

// The engine's own errands to envd; nobody else's.
constexpr std::array<std::string_view, 7> kInternalPaths = {
    "/init", "/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade"};

constexpr Refusal kNoSuchPath{404, "404 page not found"};
constexpr Refusal kNoToken{
    .status = 401,
    .message =
        "unauthorized access, please provide a valid access token or method signing if supported",
    .is_envds = true};
// As envd has it, which decides the rest: whether a signature is still in time, say.
constexpr Refusal kOtherToken{.status = 401,
                              .message = "access token present in header but does not match",
                              .is_envds = true};
constexpr Refusal kNoSignature{
    .status = 401, .message = "missing signature query parameter", .is_envds = true};
constexpr Refusal kNoTrafficToken{403, "Sandbox is secured with traffic access token"};
constexpr Refusal kNoKey{401, "unauthorized access, please provide a valid API key"};
constexpr Refusal kOtherTeam{403, "The API key is not of the sandbox's team"};

// In any spelling that a reader might take for it.
bool is_internal(std::string_view path) {
  const bool is_plain = path.find('%') == std::string_view::npos &&
                        path.find("//") == std::string_view::npos && !path.ends_with('/');
  if (is_plain) return std::ranges::find(kInternalPaths, path) != kInternalPaths.end();
  const auto decoded = http::percent_decode(path);
  if (!decoded) return true;
  std::string plain;
  for (const char c : *decoded) {
    if (c == '/' && plain.ends_with('/')) continue;
    plain += c;
  }
  while (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  return std::ranges::find(kInternalPaths, plain) != kInternalPaths.end();
}

bool has_token(const HeadView& head, const Route& route) {
  // Without a token nobody could be told from anybody.
  return !route.envd_token.empty() &&
         equal_constant_time(head.value("X-Access-Token"), route.envd_token);
}

// The one call that a signature will do for. Nobody gets as far as the sandbox without: whoever is
// there holds one of its threads.
std::optional<Refusal> check_files(const HeadView& head, const Target& target, const Route& route) {
  if (has_token(head, route)) return std::nullopt;
  if (head.find("X-Access-Token") != nullptr) return kOtherToken;
  if (route.envd_token.empty()) return kNoToken;
  if (!has_signature(target.query)) return kNoSignature;
  const auto signature = Signature::find(head.method, target.query);
  if (!signature || !signature->is_of(route.envd_token)) return kBadSignature;
  return std::nullopt;
}

std::optional<Refusal> check_envd(const HeadView& head, const Target& target, const Route& route) {
  if (is_internal(target.path)) return kNoSuchPath;
  if (route.access != Access::token) return std::nullopt;
  const bool is_health =
      target.path == "/health" && (head.method == "GET" || head.method == "HEAD");
  // A browser asks first whether it may send the header, without it.
  if (is_health || head.method == "OPTIONS") return std::nullopt;
  if (target.path == "/files") return check_files(head, target, route);
  if (!has_token(head, route)) return kNoToken;
  return std::nullopt;
}

// Whether somebody else may have sent it by way of a program of this machine: a page in a browser,
// a proxy.
bool is_on_behalf(const HeadView& head) {
  constexpr std::array<std::string_view, 6> kSigns = {
      "Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "X-Forwarded-For", "Forwarded", "Via"};
  return std::ranges::any_of(kSigns, [&](auto name) { return head.find(name) != nullptr; });
}

std::optional<Refusal> check_team_key(const AccessRules& rules, const HeadView& head,
                                      const Route& route) {
  const std::string_view key = head.value("X-API-Key");
  if (key.empty() || !rules.key_owner) return kNoKey;
  const std::string ns = rules.key_owner(key).ns;
  if (ns.empty()) return kNoKey;
  if (ns != route.key.ns) return kOtherTeam;
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> check_dialect(const AccessRules& rules, const HeadView& head,
                                     const Target& target, bool is_local_client) {
  if (target.dialect != Dialect::router) return std::nullopt;
  if (rules.router_token.empty()) {
    if (rules.router_open) return std::nullopt;
    if (is_local_client && !is_on_behalf(head)) return std::nullopt;
    return Refusal{403,
                   "forbidden: without a token, X-Sandbox-ID is for programs on this machine, and "
                   "neither for web pages nor for what a proxy passes on"};
  }
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view said = head.value("Authorization");
  if (said.size() <= kBearer.size() ||
      !http::equal_ignoring_case(said.substr(0, kBearer.size()), kBearer)) {
    return Refusal{401, "Missing or invalid Authorization header."};
  }
  if (!equal_constant_time(said.substr(kBearer.size()), rules.router_token)) {
    return Refusal{401, "Invalid token."};
  }
  return std::nullopt;
}

std::optional<Refusal> check_access(const AccessRules& rules, const HeadView& head,
                                    const Target& target, const Route& route) {
  if (route.access == Access::team_key) {
    if (auto refusal = check_team_key(rules, head, route)) return refusal;
  }
  if (target.port == kEnvdPort) return check_envd(head, target, route);
  if (route.needs_traffic_token &&
      (route.traffic_token.empty() ||
       !equal_constant_time(head.value("E2B-Traffic-Access-Token"), route.traffic_token))) {
    return kNoTrafficToken;
  }
  return std::nullopt;
}

}  // namespace hearth::gateway
