#include "cli/kube_cluster.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "cli/endpoints.h"
#include "cli/values.h"
#include "client/cluster_access.h"
#include "client/http_client.h"
#include "client/kinds.h"

namespace hearth::cli {
namespace {

using model::Json;
using model::text_at;

client::ClusterAccess find_access(const ClusterOptions& options) {
  if (!options.kubeconfig.empty())
    return client::load_kubeconfig({options.kubeconfig}, options.context);
  if (!options.context.empty())
    return client::load_kubeconfig(client::kubeconfig_files(), options.context);
  const auto endpoints = find_endpoints(options.state_dir);
  const std::string config = options.state_dir + "/" + kKubeconfigFile;
  if (!endpoints || endpoints->kube.empty() || ::access(config.c_str(), R_OK) < 0)
    fail(Code::unavailable,
         "no engine of ours runs on '{}'; start one with 'hearth up', or name another cluster with "
         "--kubeconfig",
         options.state_dir);
  return client::load_kubeconfig({config});
}

// A person waits: rather an error than many tries.
client::HttpClientOptions client_options() {
  client::HttpClientOptions options;
  options.tries = 3;
  return options;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

// What is asked for all the time. "sandboxtemplates" exist in another group too: ours come first.
const std::array<ApiKind, 5>& known_kinds() {
  static const std::array<ApiKind, 5> kKinds = {{
      {client::kSandboxes, "Sandbox", "sandbox", {}},
      {client::kSandboxClaims, "SandboxClaim", "sandboxclaim", {"claim", "claims"}},
      {client::kSandboxWarmPools, "SandboxWarmPool", "sandboxwarmpool", {"pool", "pools", "swp"}},
      {client::kSandboxTemplates, "SandboxTemplate", "sandboxtemplate", {"template", "templates"}},
      {client::kPods, "Pod", "pod", {"po"}},
  }};
  return kKinds;
}

bool is_called(const ApiKind& kind, std::string_view word) {
  const std::size_t dot = word.find('.');
  const std::string name = lower(word.substr(0, dot));
  if (dot != std::string_view::npos && lower(word.substr(dot + 1)) != kind.resource.group)
    return false;
  return name == kind.resource.plural || name == kind.singular || name == lower(kind.kind) ||
         std::ranges::find(kind.short_names, name) != kind.short_names.end();
}

std::vector<ApiKind> kinds_of(const Json& list, const std::string& group_version) {
  const std::size_t slash = group_version.find('/');
  const bool is_core = slash == std::string::npos;
  std::vector<ApiKind> kinds;
  const model::JsonArray* resources = model::array_at(list, {"resources"});
  if (resources == nullptr) return kinds;
  for (const Json& entry : *resources) {
    const std::string plural(text_at(entry, {"name"}));
    const model::JsonArray* verbs = model::array_at(entry, {"verbs"});
    const bool is_listed = verbs != nullptr && std::ranges::find(*verbs, "list") != verbs->end();
    if (plural.empty() || plural.find('/') != std::string::npos || !is_listed) continue;
    ApiKind kind{.resource = {.group = is_core ? "" : group_version.substr(0, slash),
                              .version = is_core ? group_version : group_version.substr(slash + 1),
                              .plural = plural,
                              .namespaced = model::is_true_at(entry, {"namespaced"})},
                 .kind = std::string(text_at(entry, {"kind"})),
                 .singular = std::string(text_at(entry, {"singularName"})),
                 .short_names = {}};
    if (const model::JsonArray* names = model::array_at(entry, {"shortNames"})) {
      for (const Json& name : *names)
        if (name.is_string()) kind.short_names.emplace_back(name.as_string());
    }
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

std::vector<std::string> group_versions(const FetchJson& fetch) {
  std::vector<std::string> all = {"v1"};
  const Json groups = fetch("/apis");
  if (const model::JsonArray* list = model::array_at(groups, {"groups"})) {
    for (const Json& group : *list)
      all.emplace_back(text_at(group, {"preferredVersion", "groupVersion"}));
  }
  return all;
}

[[noreturn]] void fail_unknown(std::string_view word, const std::vector<ApiKind>& kinds) {
  std::vector<std::string> names = {"sandboxes", "claims", "pools", "templates", "pods"};
  for (const ApiKind& kind : kinds) {
    const auto has_its_plural = [&](const ApiKind& other) {
      return &other != &kind && other.resource.plural == kind.resource.plural;
    };
    const auto is_it = [&](const ApiKind& other) {
      return has_its_plural(other) && other.resource.group == kind.resource.group;
    };
    if (std::ranges::any_of(known_kinds(), is_it)) continue;
    const bool is_double = std::ranges::any_of(kinds, has_its_plural) ||
                           std::ranges::any_of(known_kinds(), has_its_plural);
    const model::GroupResource name{.group = is_double ? kind.resource.group : "",
                                    .resource = kind.resource.plural};
    names.push_back(name.text());
  }
  std::ranges::sort(names.begin() + 5, names.end());
  std::vector<std::string_view> views(names.begin(), names.end());
  for (const ApiKind& kind : known_kinds()) views.emplace_back(kind.singular);
  for (const ApiKind& kind : kinds) views.emplace_back(kind.singular);
  const std::string_view nearest = find_nearest(lower(word), views);
  const std::string hint =
      nearest.empty() ? std::string() : fmt::format("did you mean '{}'? ", nearest);
  fail(Code::not_found, "there is no kind '{}'; {}there are {}", word, hint,
       fmt::join(names, ", "));
}

}  // namespace

Cluster::Cluster(const ClusterOptions& options) {
  const client::ClusterAccess access = find_access(options);
  api = std::make_unique<client::HttpClient>(access, client_options());
  ns = options.ns.empty() ? access.ns : options.ns;
}

Cluster::~Cluster() = default;

ApiKind find_kind(std::string_view word, const FetchJson& fetch) {
  for (const ApiKind& kind : known_kinds())
    if (is_called(kind, word)) return kind;
  std::vector<ApiKind> all;
  for (const std::string& version : group_versions(fetch)) {
    if (version.empty()) continue;
    try {
      const Json list =
          fetch((version.find('/') != std::string::npos ? "/apis/" : "/api/") + version);
      for (ApiKind& kind : kinds_of(list, version)) {
        if (is_called(kind, word)) return kind;
        all.push_back(std::move(kind));
      }
    } catch (const model::StatusError& error) {
      // One group that does not answer (an aggregated server that is down) hides no other.
      if (error.status().code < 500 && error.status().code != 404) throw;
    }
  }
  fail_unknown(word, all);
}

ApiKind find_kind(std::string_view word, Cluster& cluster) {
  return find_kind(word, [&](const std::string& path) { return fetch_json(cluster, path); });
}

Json fetch_json(Cluster& cluster, const std::string& path, std::string_view accept) {
  http::Request request;
  request.target = path;
  if (!accept.empty()) request.headers.set("Accept", std::string(accept));
  try {
    return model::parse_json(cluster.api->fetch(request).body).value;
  } catch (const model::StatusError&) {
    throw;
  } catch (const Error& error) {
    fail(error.code() == Code::invalid ? Code::unavailable : error.code(), "GET {}: {}", path,
         error.what());
  }
}

}  // namespace hearth::cli
