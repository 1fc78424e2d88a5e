#include "access/authenticator.h"

#include <algorithm>

#include "http/target.h"
#include "model/status.h"

namespace hearth::access {
namespace {

// Nothing for no token, and for other schemes.
std::optional<std::string_view> bearer_token(const http::Headers& headers) {
  std::string_view text = headers.value("Authorization");
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos ||
      !http::equal_ignoring_case(text.substr(0, space), "bearer"))
    return std::nullopt;
  text.remove_prefix(space + 1);
  text = text.substr(0, text.find(' '));
  if (text.empty()) return std::nullopt;
  return text;
}

std::vector<std::string> in_both(const std::vector<std::string>& left,
                                 const std::vector<std::string>& right) {
  std::vector<std::string> both;
  for (const std::string& one : left)
    if (has_word(right, one)) both.push_back(one);
  return both;
}

bool is_there(const Directory::FindUid& find, const std::string& ns, const pki::ObjectId& object) {
  const auto uid = find ? find(ns, object.name) : std::nullopt;
  return uid && *uid == object.uid;
}

// What the Impersonate-* headers say.
struct Wish {
  std::string user;
  std::string uid;
  std::vector<std::string> groups;
  std::vector<std::pair<std::string, std::string>> extra;

  bool is_empty() const { return user.empty() && uid.empty() && groups.empty() && extra.empty(); }
};

constexpr std::string_view kExtraPrefix = "Impersonate-Extra-";

std::string extra_key(std::string_view header) {
  std::string key(header.substr(kExtraPrefix.size()));
  std::ranges::transform(key, key.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return http::percent_decode(key).value_or(key);
}

Wish read_wish(const http::Headers& headers) {
  Wish wish;
  wish.user = headers.value("Impersonate-User");
  wish.uid = headers.value("Impersonate-Uid");
  for (const auto& [name, value] : headers) {
    if (http::equal_ignoring_case(name, "Impersonate-Group")) wish.groups.push_back(value);
    if (name.size() > kExtraPrefix.size() &&
        http::equal_ignoring_case(name.substr(0, kExtraPrefix.size()), kExtraPrefix))
      wish.extra.emplace_back(extra_key(name), value);
  }
  return wish;
}

void require_impersonate(const Rules& rules, Attributes wanted) {
  wanted.verb = "impersonate";
  const Decision decision = rules.decide(wanted);
  if (!decision.allowed) throw_denied(wanted, decision);
}

void check_wish(const User& asking, const Wish& wish, const Rules& rules) {
  constexpr const char* kGroup = "authentication.k8s.io";
  if (const auto account = parse_account_name(wish.user)) {
    require_impersonate(rules, {.user = asking,
                                .version = "v1",
                                .resource = "serviceaccounts",
                                .ns = account->ns,
                                .name = account->name});
  } else {
    require_impersonate(rules, {.user = asking, .resource = "users", .name = wish.user});
  }
  for (const std::string& group : wish.groups)
    require_impersonate(rules, {.user = asking, .resource = "groups", .name = group});
  for (const auto& [key, value] : wish.extra)
    require_impersonate(rules, {.user = asking,
                                .group = kGroup,
                                .version = "v1",
                                .resource = "userextras",
                                .subresource = key,
                                .name = value});
  if (!wish.uid.empty())
    require_impersonate(
        rules,
        {.user = asking, .group = kGroup, .version = "v1", .resource = "uids", .name = wish.uid});
}

}  // namespace

Authenticator::Authenticator(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {
  // An empty token would let in whoever sends none.
  std::erase_if(options_.tokens, [](const StaticToken& known) { return known.token.empty(); });
  for (StaticToken& known : options_.tokens) join(known.user, kAuthenticated);
  if (options_.audiences.empty() && options_.signer != nullptr)
    options_.audiences = {options_.signer->issuer()};
}

User Authenticator::authenticate(const http::Request& request) const {
  if (!request.peer_certificate.empty()) {
    User user{.name = request.peer_certificate, .groups = request.peer_groups};
    join(user, kAuthenticated);
    return user;
  }
  const auto token = bearer_token(request.headers);
  if (!token) return anonymous_user();
  if (auto known = find_token(*token, {})) return std::move(known->user);
  throw model::StatusError({.code = 401, .reason = "Unauthorized", .message = "Unauthorized"});
}

std::optional<TokenUser> Authenticator::find_token(
    std::string_view token, const std::vector<std::string>& audiences) const {
  const std::vector<std::string>& wanted = audiences.empty() ? options_.audiences : audiences;
  // Every token is compared, so that the time tells nothing about which one came near.
  const User* found = nullptr;
  for (const StaticToken& known : options_.tokens)
    if (http::equal_constant_time(known.token, token)) found = &known.user;
  // A token without audiences is for this server.
  if (found != nullptr) {
    auto meant = in_both(wanted, options_.audiences);
    if (meant.empty() && !wanted.empty()) return std::nullopt;
    return TokenUser{*found, std::move(meant)};
  }
  if (options_.signer == nullptr) return std::nullopt;
  const auto claims = options_.signer->verify(token, clock_.now());
  if (!claims) return std::nullopt;
  auto meant = in_both(wanted, claims->audiences);
  if (meant.empty()) return std::nullopt;
  auto user = find_account(*claims);
  if (!user) return std::nullopt;
  return TokenUser{*std::move(user), std::move(meant)};
}

std::optional<User> Authenticator::find_account(const pki::Claims& claims) const {
  if (!is_there(options_.directory.account, claims.ns, claims.account)) return std::nullopt;
  if (claims.pod && !is_there(options_.directory.pod, claims.ns, *claims.pod)) return std::nullopt;
  User user = account_user(claims);
  join(user, kAuthenticated);
  return user;
}

User impersonate(const User& asking, const http::Headers& headers, const Rules& rules) {
  const Wish wish = read_wish(headers);
  if (wish.is_empty()) return asking;
  if (wish.user.empty())
    model::throw_bad_request("requested groups, a uid or extra without impersonating a user");
  check_wish(asking, wish, rules);

  User user{.name = wish.user, .uid = wish.uid, .groups = wish.groups};
  const auto account = parse_account_name(wish.user);
  if (account && user.groups.empty()) user.groups = account_groups(account->ns);
  for (const auto& [key, value] : wish.extra) user.extra[key].push_back(value);
  if (user.name == kAnonymous) {
    join(user, kUnauthenticated);
  } else if (!user.is_in(kUnauthenticated)) {
    join(user, kAuthenticated);
  }
  return user;
}

}  // namespace hearth::access
