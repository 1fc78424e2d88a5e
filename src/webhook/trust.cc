#include "webhook/trust.h"

#include <array>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/error.h"
#include "client/kinds.h"

namespace hearth::webhook {
namespace {

using model::Json;
using model::JsonObject;

const client::ResourceId kCrds{"apiextensions.k8s.io", "v1", "customresourcedefinitions", false};
constexpr std::array kConverted = {
    "sandboxes.agents.x-k8s.io",
    "sandboxclaims.extensions.agents.x-k8s.io",
    "sandboxtemplates.extensions.agents.x-k8s.io",
    "sandboxwarmpools.extensions.agents.x-k8s.io",
};
constexpr const char* kAuthority = "ca.crt";
constexpr const char* kAuthorityKey = "ca.key";
constexpr const char* kCertificate = "tls.crt";
constexpr const char* kKey = "tls.key";
// Replicas that start together write together: one wins, the others read what it wrote.
constexpr int kMostTries = 10;

std::string data_of(const Json& secret, std::string_view name) {
  return base64_decode(model::text_at(secret, {"data", name})).value_or("");
}

pki::Serving serving_of(const Json& secret) {
  return {data_of(secret, kAuthority),
          data_of(secret, kAuthorityKey),
          {data_of(secret, kCertificate), data_of(secret, kKey)}};
}

bool is_same(const pki::Serving& left, const pki::Serving& right) {
  return left.authority == right.authority && left.authority_key == right.authority_key &&
         left.server.certificate == right.server.certificate && left.server.key == right.server.key;
}

void keep(client::Client& client, Json secret, bool is_new, const pki::Serving& serving) {
  JsonObject& data = model::make_object_at(secret, {"data"});
  data[kAuthority] = base64_encode(serving.authority);
  data[kAuthorityKey] = base64_encode(serving.authority_key);
  data[kCertificate] = base64_encode(serving.server.certificate);
  data[kKey] = base64_encode(serving.server.key);
  if (is_new)
    client.create(client::kSecrets, secret);
  else
    client.update(client::kSecrets, secret);
}

Json new_secret(const std::string& ns) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", {{"name", kSecretName}, {"namespace", ns}}},
          {"type", "Opaque"}};
}

// The Service that a CRD is converted by; empty where it is none.
model::Key converter_of(const Json& crd) {
  if (model::text_at(crd, {"spec", "conversion", "strategy"}) != "Webhook") return {};
  const Json* service =
      model::find(crd, {"spec", "conversion", "webhook", "clientConfig", "service"});
  if (!service) return {};
  return {std::string(model::text_at(*service, {"namespace"})),
          std::string(model::text_at(*service, {"name"}))};
}

bool is_late(const model::StatusError& error) {
  return error.code() == Code::conflict || error.code() == Code::already_exists;
}

// Only if nobody has written it since: they may have wanted another Service.
void write_authority(client::Client& client, const Json& crd, const std::string& bundle) {
  const Json config = {{"clientConfig", {{"caBundle", bundle}}}};
  const Json patch = {
      {"metadata", {{"resourceVersion", model::resource_version_of(crd)}}},
      {"spec", {{"conversion", {{"webhook", config}}}}},
  };
  client.patch(kCrds, "", model::name_of(crd), client::PatchKind::merge, patch);
}

// Empty: it is trusted, or there is no such CRD.
std::string try_to_trust(client::Client& client, const std::string& name, const model::Key& service,
                         const std::string& bundle) {
  const auto crd = client.find(kCrds, "", name);
  if (!crd) return {};
  const model::Key converter = converter_of(*crd);
  if (converter.name.empty()) return fmt::format("{} is not converted by a Service", name);
  if (converter != service)
    return fmt::format("{} is converted by Service '{}', not by '{}'", name, converter.text(),
                       service.text());
  const std::string_view trusted =
      model::text_at(*crd, {"spec", "conversion", "webhook", "clientConfig", "caBundle"});
  if (trusted != bundle) write_authority(client, *crd, bundle);
  return {};
}

// `act` until it is not too late; what it returns.
template <typename F>
auto in_time(F act) {
  for (int left = kMostTries;; --left) {
    try {
      return act();
    } catch (const model::StatusError& error) {
      if (!is_late(error) || left == 0) throw;
    }
  }
}

}  // namespace

std::vector<std::string> names_of_service(const model::Key& service,
                                          const std::string& cluster_domain) {
  const std::string inside = fmt::format("{}.{}", service.name, service.ns);
  return {inside + ".svc", inside, service.name, fmt::format("{}.svc.{}", inside, cluster_domain)};
}

pki::Serving share_identity(client::Client& client, const std::string& ns,
                            const std::vector<std::string>& names, Time now) {
  return in_time([&] {
    const auto secret = client.find(client::kSecrets, ns, kSecretName);
    const pki::Serving kept = secret ? serving_of(*secret) : pki::Serving();
    pki::Serving wanted = pki::renew_serving(kept, names, now);
    if (!is_same(kept, wanted)) keep(client, secret ? *secret : new_secret(ns), !secret, wanted);
    return wanted;
  });
}

bool is_converted_by(client::Client& client, const model::Key& service) {
  try {
    const auto crd = client.find(kCrds, "", kConverted[0]);
    return crd && converter_of(*crd) == service;
  } catch (const model::StatusError& error) {
    if (error.code() != Code::forbidden) throw;
    return false;
  }
}

std::vector<std::string> trust_authority(client::Client& client, const model::Key& service,
                                         const std::string& authority) {
  const std::string bundle = base64_encode(authority);
  std::vector<std::string> left_alone;
  for (const char* name : kConverted) {
    std::string why = in_time([&] { return try_to_trust(client, name, service, bundle); });
    if (!why.empty()) left_alone.push_back(std::move(why));
  }
  return left_alone;
}

}  // namespace hearth::webhook
