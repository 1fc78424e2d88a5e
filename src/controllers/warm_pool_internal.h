// What the two halves of the warm pool's reconciler share.
#pragma once

#include <vector>

#include "client/watch_cache.h"
#include "model/meta.h"

namespace hearth::controllers {

// Of pools: "NS/TEMPLATE", the template's own namespace, and "NS/HASH"; of sandboxes: "NS/HASH".
inline constexpr char kByTemplate[] = "warm-pool-template";
inline constexpr char kByNameHash[] = "warm-pool-name-hash";
inline constexpr char kByPoolLabel[] = "warm-pool-label";

// Whoever has the pool's label.
std::vector<client::Object> members_of(const client::WatchCache& sandboxes, const model::Key& pool);

}  // namespace hearth::controllers
