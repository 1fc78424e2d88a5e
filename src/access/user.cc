#include "access/user.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/id.h"

namespace hearth::access {
namespace {

constexpr std::string_view kAccountPrefix = "system:serviceaccount:";

JsonArray to_json(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

}  // namespace

bool User::is_in(std::string_view group) const {
  return std::ranges::find(groups, group) != groups.end();
}

void join(User& user, std::string_view group) {
  if (!user.is_in(group)) user.groups.emplace_back(group);
}

User anonymous_user() {
  return {.name = std::string(kAnonymous), .groups = {std::string(kUnauthenticated)}};
}

std::optional<AccountName> parse_account_name(std::string_view user) {
  if (!user.starts_with(kAccountPrefix)) return std::nullopt;
  user.remove_prefix(kAccountPrefix.size());
  const std::size_t colon = user.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view ns = user.substr(0, colon);
  const std::string_view name = user.substr(colon + 1);
  if (!is_label(ns) || name.empty() || name.find(':') != std::string_view::npos)
    return std::nullopt;
  return AccountName{std::string(ns), std::string(name)};
}

std::string account_user_name(std::string_view ns, std::string_view name) {
  return fmt::format("{}{}:{}", kAccountPrefix, ns, name);
}

std::vector<std::string> account_groups(std::string_view ns) {
  return {"system:serviceaccounts", fmt::format("system:serviceaccounts:{}", ns)};
}

User account_user(const pki::Claims& claims) {
  constexpr std::string_view kPrefix = "authentication.kubernetes.io/";
  User user{.name = claims.subject(), .uid = claims.account.uid};
  user.groups = account_groups(claims.ns);
  const auto tell = [&](std::string_view what, std::string value) {
    if (!value.empty()) user.extra[fmt::format("{}{}", kPrefix, what)] = {std::move(value)};
  };
  tell("credential-id", "JTI=" + claims.id);
  if (claims.pod) {
    tell("pod-name", claims.pod->name);
    tell("pod-uid", claims.pod->uid);
  }
  if (claims.node) {
    tell("node-name", claims.node->name);
    tell("node-uid", claims.node->uid);
  }
  return user;
}

Json to_json(const User& user) {
  JsonObject json{{"username", user.name}};
  if (!user.uid.empty()) json["uid"] = user.uid;
  if (!user.groups.empty()) json["groups"] = to_json(user.groups);
  if (!user.extra.empty()) {
    JsonObject extra;
    for (const auto& [key, values] : user.extra) extra[key] = to_json(values);
    json["extra"] = std::move(extra);
  }
  return json;
}

}  // namespace hearth::access
