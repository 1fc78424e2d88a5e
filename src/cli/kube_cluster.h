// A cluster that a verb talks to, and the kinds that it has.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/kube_verbs.h"
#include "client/client.h"

namespace hearth::client {
class HttpClient;
}

namespace hearth::cli {

struct Cluster {
  std::unique_ptr<client::HttpClient> api;
  std::string ns;

  explicit Cluster(const ClusterOptions& options);
  ~Cluster();
};

struct ApiKind {
  client::ResourceId resource;
  std::string kind;  // "SandboxClaim"
  std::string singular;
  std::vector<std::string> short_names;
};

// The answer to a GET.
using FetchJson = std::function<model::Json(const std::string& path)>;

// A plural, singular, short name or Kind, in any case, perhaps with its group behind a dot; and
// claim, pool and template for short. Those that we know cost no question. Throws
// Error(not_found) that names what there is.
ApiKind find_kind(std::string_view word, const FetchJson& fetch);
ApiKind find_kind(std::string_view word, Cluster& cluster);

model::Json fetch_json(Cluster& cluster, const std::string& path, std::string_view accept = {});

}  // namespace hearth::cli
