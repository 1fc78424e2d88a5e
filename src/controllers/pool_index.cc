#include "controllers/pool_index.h"

#include "model/agent_sandbox.h"
#include "model/template_ref.h"

namespace hearth::controllers {
namespace {

using client::Object;
using model::Json;

// Of pools: "NS/TEMPLATE", the template's own namespace, and "NS/HASH"; of sandboxes: "NS/HASH".
constexpr char kByTemplate[] = "warm-pool-template";
constexpr char kByNameHash[] = "warm-pool-name-hash";
constexpr char kByPoolLabel[] = "warm-pool-label";

std::string within(std::string_view ns, std::string_view value) {
  return std::string(ns) + "/" + std::string(value);
}

}  // namespace

client::WatchCacheOptions warm_pool_cache_options() {
  client::WatchCacheOptions options;
  options.indexes.emplace(kByTemplate, [](const Json& pool) {
    return std::vector{model::template_key_of(pool).text()};
  });
  options.indexes.emplace(kByNameHash, [](const Json& pool) {
    return std::vector{within(model::namespace_of(pool), model::name_hash(model::name_of(pool)))};
  });
  return options;
}

client::WatchCacheOptions pool_sandbox_cache_options() {
  client::WatchCacheOptions options;
  options.indexes.emplace(kByPoolLabel, [](const Json& sandbox) -> std::vector<std::string> {
    const std::string_view pool = model::label_of(sandbox, model::kPoolLabel);
    if (pool.empty()) return {};
    return {within(model::namespace_of(sandbox), pool)};
  });
  return options;
}

std::vector<Object> pools_of_template(const client::WatchCache& pools,
                                      const model::Key& sandbox_template) {
  return pools.find_by_index(kByTemplate, sandbox_template.text());
}

std::vector<Object> pools_by_label(const client::WatchCache& pools, std::string_view ns,
                                   std::string_view label) {
  return pools.find_by_index(kByNameHash, within(ns, label));
}

std::vector<Object> members_of(const client::WatchCache& sandboxes, const model::Key& pool) {
  return sandboxes.find_by_index(kByPoolLabel, within(pool.ns, model::name_hash(pool.name)));
}

}  // namespace hearth::controllers
