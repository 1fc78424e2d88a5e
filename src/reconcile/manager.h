// What a set of controllers shares: caches, and the order of starting and stopping.
//
// Caches come first and have synced before the controllers start. Where only a leader may act, it
// starts its controllers when it has become one; who has lost the lease is done (see
// leader_election.h).
#pragma once

#include <deque>
#include <memory>
#include <stop_token>

#include "client/watch_cache.h"
#include "reconcile/controller.h"

namespace hearth::reconcile {

class Manager {
 public:
  // Both must outlive it. `metrics` is for controllers whose options name none.
  explicit Manager(client::Client& client, metrics::Registry* metrics = nullptr)
      : client_(client), metrics_(metrics) {}
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;
  ~Manager();

  // The cache of a kind, one for all who ask. What it holds (namespace, selectors) is said by the
  // first who asks; later ones say nothing or the same about that. Everyone may add indexes, under
  // names of their own. All before start_caches().
  client::WatchCache& cache(const client::ResourceId& resource,
                            client::WatchCacheOptions options = {});
  // Its changes wait, a few milliseconds at most, while something urgent is being done. Not for a
  // cache whose changes are what is urgent. Before start_caches().
  void let_lag(client::WatchCache& cache);
  // Before start(). Both the reconciler and whatever it uses must outlive the manager.
  Controller& add(Reconciler& reconciler, ControllerOptions options);

  // Caches first. Throws Error(timeout) when they have not synced in time, naming which.
  // Error(unavailable) when it was called off.
  void start_caches(Duration patience = std::chrono::minutes(2), const std::stop_token& stop = {});
  void start_controllers();
  // Idempotent. Controllers first: what they are doing is waited for.
  void stop();

  bool is_synced() const;
  client::Client& client() { return client_; }
  // Among its controllers, and whoever else has something urgent to do.
  RightOfWay& right_of_way() { return right_of_way_; }
  const std::deque<Controller>& controllers() const { return controllers_; }

 private:
  struct Kept {
    client::ResourceId resource;
    client::WatchCacheOptions options;  // without indexes
    std::unique_ptr<client::WatchCache> cache;
  };

  Kept* find(const client::ResourceId& resource);

  client::Client& client_;
  metrics::Registry* metrics_;
  RightOfWay right_of_way_;
  std::deque<Kept> caches_;
  std::deque<Controller> controllers_;
  bool is_started_ = false;
};

}  // namespace hearth::reconcile
