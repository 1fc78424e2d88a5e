#include "registry/authorization.h"

#include <algorithm>

#include <boost/json/value.hpp>

#include "base/base64.h"
#include "base/error.h"
#include "registry/json_internal.h"
#include "registry/retry.h"

namespace hearth::registry {
namespace {

constexpr std::size_t kMaxTokenAnswer = 256 << 10;
// As large as a head may be at our own server; those of cloud providers have 2 to 4 KiB.
constexpr std::size_t kMaxToken = 32 << 10;

const Challenge* find_scheme(const std::vector<Challenge>& challenges, std::string_view scheme) {
  const auto found = std::ranges::find(challenges, scheme, &Challenge::scheme);
  return found == challenges.end() ? nullptr : &*found;
}

std::string parameter(const Challenge& challenge, const std::string& name) {
  const auto found = challenge.parameters.find(name);
  return found == challenge.parameters.end() ? std::string() : found->second;
}

}  // namespace

std::string parse_token(std::string_view text) {
  const boost::json::value value = parse_json(text, "the token's answer");
  const auto& object = object_of(value, "the token's answer");
  std::string token = find_text(object, "token");
  if (token.empty()) token = find_text(object, "access_token");
  const bool is_clean = std::ranges::all_of(token, [](char c) { return c > ' ' && c < '\x7f'; });
  if (token.empty() || token.size() > kMaxToken || !is_clean) {
    fail(Code::invalid, "the token's answer has no token in it");
  }
  return token;
}

Authorization::Authorization(Transport& transport, Url registry, std::string repository,
                             Credentials credentials)
    : transport_(transport),
      registry_(std::move(registry)),
      repository_(std::move(repository)),
      credentials_(std::move(credentials)) {}

std::string Authorization::current() const {
  const std::lock_guard lock(mutex_);
  return value_;
}

void Authorization::renew(const std::string& used, const std::vector<Challenge>& challenges,
                          Duration patience) {
  const std::lock_guard renewing(renewing_);
  if (current() != used) return;  // another thread was faster
  std::string value;
  if (const Challenge* bearer = find_scheme(challenges, "bearer")) {
    value = "Bearer " + fetch_token(*bearer, patience);
  } else if (find_scheme(challenges, "basic") != nullptr && !credentials_.username.empty()) {
    value = "Basic " + base64_encode(credentials_.username + ':' + credentials_.password);
  }
  if (value.empty()) {
    fail(Code::unauthenticated, "{} wants credentials, and there are none for it",
         registry_.origin());
  }
  if (value == used) {
    fail(Code::unauthenticated, "{} does not accept the credentials that it was given",
         registry_.origin());
  }
  const std::lock_guard lock(mutex_);
  value_ = std::move(value);
}

net::Request Authorization::token_request(const Challenge& challenge, const Url& realm) const {
  std::string form;
  if (const auto service = parameter(challenge, "service"); !service.empty()) {
    form += "service=" + form_encode(service) + '&';
  }
  std::string scope = parameter(challenge, "scope");
  if (scope.empty()) scope = "repository:" + repository_ + ":pull";
  form += "scope=" + form_encode(scope);

  net::Request request;
  if (!credentials_.identity_token.empty()) {
    request.method = "POST";
    request.target = realm.target;
    request.headers.add("Content-Type", "application/x-www-form-urlencoded");
    request.body = form + "&grant_type=refresh_token&client_id=hearth&refresh_token=" +
                   form_encode(credentials_.identity_token);
    return request;
  }
  const bool has_query = realm.target.find('?') != std::string::npos;
  request.target = realm.target + (has_query ? '&' : '?') + form;
  if (!credentials_.username.empty()) {
    const std::string pair = credentials_.username + ':' + credentials_.password;
    request.headers.add("Authorization", "Basic " + base64_encode(pair));
  }
  return request;
}

std::string Authorization::fetch_token(const Challenge& challenge, Duration patience) {
  const Url realm = parse_url(parameter(challenge, "realm"));
  if (registry_.tls && !realm.tls) {
    fail(Code::invalid, "{} wants us to fetch a token without encryption", registry_.origin());
  }
  const net::Response response = transport_.client_for(realm).fetch(
      token_request(challenge, realm), {.timeout = patience, .max_body_bytes = kMaxTokenAnswer});
  if (response.status == 200) return parse_token(response.body);
  const std::string text =
      fmt::format("{} answers {} when asked for a token", realm.shown(), response.status);
  if (response.status == 429 || response.status >= 500) throw Busy(text, {});
  if (credentials_.empty()) throw Error(Code::unauthenticated, text + "; it wants credentials");
  throw Error(Code::unauthenticated, text + "; it does not accept the credentials");
}

}  // namespace hearth::registry
