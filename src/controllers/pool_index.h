// How pools and their members are found: by indexes, which caches have from their start on.
#pragma once

#include <string_view>
#include <vector>

#include "client/watch_cache.h"
#include "model/meta.h"

namespace hearth::controllers {

client::WatchCacheOptions warm_pool_cache_options();     // of SandboxWarmPools
client::WatchCacheOptions pool_sandbox_cache_options();  // of Sandboxes

// The pools that are made of a template, of its namespace and of others.
std::vector<client::Object> pools_of_template(const client::WatchCache& pools,
                                              const model::Key& sandbox_template);
// The pools that a member's label means.
std::vector<client::Object> pools_by_label(const client::WatchCache& pools, std::string_view ns,
                                           std::string_view label);
// Whoever has the pool's label.
std::vector<client::Object> members_of(const client::WatchCache& sandboxes, const model::Key& pool);

}  // namespace hearth::controllers
