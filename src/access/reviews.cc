#include "access/reviews.h"

#include <fmt/format.h>

#include "base/json_text.h"
#include "base/time_text.h"
#include "model/status.h"

namespace hearth::access {
namespace {

using model::find;
using model::text_at;

constexpr std::string_view kAuthorization = "authorization.k8s.io";
constexpr std::string_view kAuthentication = "authentication.k8s.io";

JsonObject answer(std::string_view kind, std::string_view group) {
  return {{"kind", kind}, {"apiVersion", fmt::format("{}/v1", group)}, {"metadata", JsonObject()}};
}

JsonArray to_json(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

std::vector<std::string> texts_at(const Json& json, model::Path path) {
  std::vector<std::string> texts;
  if (const JsonArray* array = model::array_at(json, path)) {
    for (const Json& one : *array)
      if (one.is_string()) texts.emplace_back(one.get_string());
  }
  return texts;
}

// The question of an access review.
Attributes read_question(const Json& review, std::string_view kind) {
  const Json* resource = find(review, {"spec", "resourceAttributes"});
  const Json* path = find(review, {"spec", "nonResourceAttributes"});
  const bool has_resource = resource != nullptr && resource->is_object();
  const bool has_path = path != nullptr && path->is_object();
  if (has_resource == has_path) {
    model::throw_invalid(
        {std::string(kAuthorization), std::string(kind)}, "",
        {model::invalid("spec.resourceAttributes",
                        has_resource ? model::to_text(*resource) : "null",
                        "exactly one of nonResourceAttributes or resourceAttributes must be "
                        "specified")});
  }
  Attributes asked;
  asked.is_resource = has_resource;
  const Json& from = has_resource ? *resource : *path;
  asked.verb = text_at(from, {"verb"});
  if (has_path) {
    asked.path = text_at(from, {"path"});
    return asked;
  }
  asked.group = text_at(from, {"group"});
  asked.version = text_at(from, {"version"});
  asked.resource = text_at(from, {"resource"});
  asked.subresource = text_at(from, {"subresource"});
  asked.ns = text_at(from, {"namespace"});
  asked.name = text_at(from, {"name"});
  return asked;
}

User read_subject(const Json& review, std::string_view kind) {
  User user{.name = std::string(text_at(review, {"spec", "user"})),
            .uid = std::string(text_at(review, {"spec", "uid"})),
            .groups = texts_at(review, {"spec", "groups"})};
  if (user.name.empty() && user.groups.empty()) {
    model::throw_invalid(
        {std::string(kAuthorization), std::string(kind)}, "",
        {model::invalid("spec.user", "\"\"", "at least one of user or group must be specified")});
  }
  return user;
}

Json access_answer(std::string_view kind, const Json& review, const Decision& decision) {
  JsonObject filled = answer(kind, kAuthorization);
  filled["spec"] = *find(review, {"spec"});
  JsonObject status{{"allowed", decision.allowed}};
  if (!decision.reason.empty()) status["reason"] = decision.reason;
  filled["status"] = std::move(status);
  return filled;
}

constexpr std::int64_t kDefaultSeconds = 3600;
constexpr std::int64_t kLeastSeconds = 600;
constexpr std::int64_t kMostSeconds = std::int64_t{1} << 32;

std::int64_t read_lifetime(const Json& request) {
  const std::int64_t seconds =
      model::number_at(request, {"spec", "expirationSeconds"}).value_or(kDefaultSeconds);
  const char* problem = seconds < kLeastSeconds  ? "may not specify a duration less than 10 minutes"
                        : seconds > kMostSeconds ? "may not specify a duration larger than 2^32 "
                                                   "seconds"
                                                 : nullptr;
  if (problem != nullptr) {
    model::throw_invalid(
        {std::string(kAuthentication), "TokenRequest"}, "",
        {model::invalid("spec.expirationSeconds", std::to_string(seconds), problem)});
  }
  return seconds;
}

void check_target(const Json& request, const TokenDesk& desk) {
  const auto differs = [&](std::string_view member, std::string_view wanted) {
    const std::string_view said = text_at(request, {"metadata", member});
    if (said.empty() || said == wanted) return;
    model::throw_invalid({std::string(kAuthentication), "TokenRequest"}, desk.account.name,
                         {model::invalid(fmt::format("metadata.{}", member), json_quote(said),
                                         fmt::format("must match the service account {} if "
                                                     "specified",
                                                     member))});
  };
  differs("name", desk.account.name);
  differs("namespace", desk.ns);
}

// Fills in the pod that a token is bound to, if the request names one.
void bind_pod(const Json& request, const TokenDesk& desk, pki::Claims& claims) {
  const Json* bound = find(request, {"spec", "boundObjectRef"});
  if (bound == nullptr || !bound->is_object()) return;
  const std::string_view kind = text_at(*bound, {"kind"});
  const std::string_view version = text_at(*bound, {"apiVersion"});
  if (kind != "Pod" || (!version.empty() && version != "v1"))
    model::throw_bad_request(
        fmt::format("cannot bind token to object of type {}, Kind={}", version, kind));
  const std::string name(text_at(*bound, {"name"}));
  const auto pod = desk.find_pod ? desk.find_pod(name) : std::nullopt;
  if (!pod) model::throw_not_found({"", "pods"}, name);
  if (pod->account != desk.account.name) {
    model::throw_bad_request(
        fmt::format("cannot bind token for serviceaccount {} to pod running "
                    "with different serviceaccount name.",
                    json_quote(desk.account.name)));
  }
  const std::string_view uid = text_at(*bound, {"uid"});
  if (!uid.empty() && uid != pod->uid) {
    model::throw_conflict({"", "Pod"}, name,
                          fmt::format("the UID in the bound object reference ({}) does not match "
                                      "the UID in record. The object might have been deleted and "
                                      "then recreated",
                                      uid));
  }
  claims.pod = pki::ObjectId{name, pod->uid};
  if (!pod->node.empty()) claims.node = pki::ObjectId{pod->node, pod->node_uid};
}

}  // namespace

Json review_self_access(const Json& review, const User& user, const Rules& rules) {
  Attributes asked = read_question(review, "SelfSubjectAccessReview");
  asked.user = user;
  return access_answer("SelfSubjectAccessReview", review, rules.decide(asked));
}

Json review_access(const Json& review, const Rules& rules) {
  Attributes asked = read_question(review, "SubjectAccessReview");
  asked.user = read_subject(review, "SubjectAccessReview");
  return access_answer("SubjectAccessReview", review, rules.decide(asked));
}

Json review_local_access(const Json& review, const std::string& ns, const Rules& rules) {
  constexpr std::string_view kKind = "LocalSubjectAccessReview";
  Attributes asked = read_question(review, kKind);
  asked.user = read_subject(review, kKind);
  if (!asked.is_resource || asked.ns != ns) {
    model::throw_invalid({std::string(kAuthorization), std::string(kKind)}, "",
                         {model::invalid("spec.resourceAttributes.namespace", json_quote(asked.ns),
                                         "must match metadata.namespace")});
  }
  Json filled = access_answer(kKind, review, rules.decide(asked));
  model::make_object_at(filled, {"metadata"})["namespace"] = ns;
  return filled;
}

Json review_self_rules(const Json& review, const User& user, const Rules& rules) {
  const std::string_view ns = text_at(review, {"spec", "namespace"});
  if (ns.empty()) model::throw_bad_request("no namespace on request");
  JsonArray resources;
  JsonArray paths;
  for (const Rule* rule : rules.of(user, ns)) {
    if (!rule->resources.empty()) {
      Rule only = *rule;
      only.urls.clear();
      resources.push_back(access::to_json(only));
    }
    if (!rule->urls.empty())
      paths.push_back(access::to_json({.verbs = rule->verbs, .urls = rule->urls}));
  }
  JsonObject filled = answer("SelfSubjectRulesReview", kAuthorization);
  filled["spec"] = JsonObject();
  filled["status"] = JsonObject{{"resourceRules", std::move(resources)},
                                {"nonResourceRules", std::move(paths)},
                                {"incomplete", false}};
  return filled;
}

Json review_self(const User& user, Time now) {
  JsonObject filled = answer("SelfSubjectReview", kAuthentication);
  filled["metadata"] = JsonObject{{"creationTimestamp", format_rfc3339(now)}};
  filled["status"] = JsonObject{{"userInfo", access::to_json(user)}};
  return filled;
}

Json review_token(const Json& review, const Authenticator& authenticator) {
  const std::string_view token = text_at(review, {"spec", "token"});
  if (token.empty())
    model::throw_bad_request("token is required for TokenReview in authentication");
  const auto known = authenticator.find_token(token, texts_at(review, {"spec", "audiences"}));
  JsonObject filled = answer("TokenReview", kAuthentication);
  filled["spec"] = *find(review, {"spec"});
  JsonObject status{{"authenticated", known.has_value()}};
  if (known) {
    status["user"] = access::to_json(known->user);
    status["audiences"] = to_json(known->audiences);
  } else {
    status["error"] = "invalid bearer token";
  }
  filled["status"] = std::move(status);
  return filled;
}

Json issue_token(const Json& request, const TokenDesk& desk, Time now) {
  check_target(request, desk);
  const std::int64_t seconds = read_lifetime(request);
  pki::Claims claims{.audiences = texts_at(request, {"spec", "audiences"}),
                     .ns = desk.ns,
                     .account = desk.account,
                     .issued = now,
                     .expires = now + std::chrono::seconds(seconds)};
  if (claims.audiences.empty()) claims.audiences = desk.audiences;
  if (claims.audiences.empty()) claims.audiences = {desk.signer->issuer()};
  bind_pod(request, desk, claims);

  JsonObject filled = answer("TokenRequest", kAuthentication);
  filled["metadata"] = JsonObject{{"name", desk.account.name},
                                  {"namespace", desk.ns},
                                  {"creationTimestamp", format_rfc3339(now)}};
  const Json* bound = find(request, {"spec", "boundObjectRef"});
  filled["spec"] = JsonObject{{"audiences", to_json(claims.audiences)},
                              {"expirationSeconds", seconds},
                              {"boundObjectRef", bound == nullptr ? Json() : *bound}};
  filled["status"] = JsonObject{{"token", desk.signer->sign(claims)},
                                {"expirationTimestamp", format_rfc3339(claims.expires)}};
  return filled;
}

}  // namespace hearth::access
