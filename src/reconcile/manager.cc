#include "reconcile/manager.h"

#include <utility>

#include "base/error.h"

namespace hearth::reconcile {
namespace {

// Long enough for a burst of claims to be over, too short for anybody to notice.
constexpr Duration kMostLag = std::chrono::milliseconds(10);

bool says_nothing(const client::WatchCacheOptions& options) {
  return options.ns.empty() && options.label_selector.empty() && options.field_selector.empty();
}

bool says_the_same(const client::WatchCacheOptions& one, const client::WatchCacheOptions& other) {
  return one.ns == other.ns && one.label_selector == other.label_selector &&
         one.field_selector == other.field_selector;
}

}  // namespace

Manager::~Manager() {
  stop();
}

Manager::Kept* Manager::find(const client::ResourceId& resource) {
  for (Kept& kept : caches_) {
    const bool is_it = kept.resource.group == resource.group &&
                       kept.resource.version == resource.version &&
                       kept.resource.plural == resource.plural;
    if (is_it) return &kept;
  }
  return nullptr;
}

client::WatchCache& Manager::cache(const client::ResourceId& resource,
                                   client::WatchCacheOptions options) {
  auto indexes = std::exchange(options.indexes, {});
  Kept* kept = find(resource);
  if (kept == nullptr) {
    HEARTH_ASSERT(!is_started_);
    kept = &caches_.emplace_back();
    kept->resource = resource;
    kept->options = options;
    kept->cache = std::make_unique<client::WatchCache>(client_, resource, options);
  }
  HEARTH_ASSERT(says_nothing(options) || says_the_same(options, kept->options));
  for (const auto& [name, function] : indexes) kept->cache->add_index(name, function);
  return *kept->cache;
}

void Manager::let_lag(client::WatchCache& cache) {
  cache.set_give_way([this, turn = RightOfWay::Turn()](const std::stop_token& stop) mutable {
    right_of_way_.give_way_briefly(turn, kMostLag, stop);
  });
}

Controller& Manager::add(Reconciler& reconciler, ControllerOptions options) {
  HEARTH_ASSERT(!is_started_);
  if (options.metrics == nullptr) options.metrics = metrics_;
  if (options.right_of_way == nullptr) options.right_of_way = &right_of_way_;
  return controllers_.emplace_back(reconciler, std::move(options));
}

void Manager::start_caches(Duration patience, const std::stop_token& stop) {
  HEARTH_ASSERT(!is_started_);
  is_started_ = true;
  const auto until = std::chrono::steady_clock::now() + patience;
  for (Kept& kept : caches_) kept.cache->start();
  for (const Kept& kept : caches_) {
    if (kept.cache->wait_synced(until - std::chrono::steady_clock::now(), stop)) continue;
    const std::string where = kept.resource.plural + " of " + kept.resource.api_version();
    if (stop.stop_requested()) fail(Code::unavailable, "stopped while reading {}", where);
    fail(Code::timeout, "could not read {} within {} s", where,
         std::chrono::duration_cast<std::chrono::seconds>(patience).count());
  }
}

void Manager::start_controllers() {
  HEARTH_ASSERT(is_started_);
  for (Controller& controller : controllers_) controller.start();
}

void Manager::stop() {
  for (Controller& controller : controllers_) controller.stop();
  for (Kept& kept : caches_) kept.cache->stop();
}

bool Manager::is_synced() const {
  for (const Kept& kept : caches_) {
    if (!kept.cache->is_synced()) return false;
  }
  return true;
}

}  // namespace hearth::reconcile
