// What a set of controllers shares: caches, and the order of starting and stopping.
//
// start() starts the caches, waits for them, and then starts the controllers; where one is to lead,
// that comes last, and losing the lease ends the process' turn (see leader_election.h).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/watch_cache.h"
#include "reconcile/controller.h"

namespace hearth::reconcile {

class Manager {
 public:
  // `client` must outlive it.
  explicit Manager(client::Client& client) : client_(client) {}
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;
  ~Manager();

  // The cache of a kind, one for all who ask. Options count the first time; later ones may only add
  // indexes, and all before start().
  client::WatchCache& cache(const client::ResourceId& resource,
                            client::WatchCacheOptions options = {});
  // Before start(). Both the reconciler and whatever it uses must outlive the manager.
  Controller& add(Reconciler& reconciler, ControllerOptions options);

  // Caches first. Throws Error(timeout) when they have not synced in time, naming which.
  void start_caches(Duration patience = std::chrono::minutes(2), const std::stop_token& stop = {});
  void start_controllers();
  void stop();

  bool is_synced() const;
  client::Client& client() { return client_; }
  const std::deque<Controller>& controllers() const { return controllers_; }

 private:
  struct Kept {
    client::ResourceId resource;
    client::WatchCacheOptions options;
    std::unique_ptr<client::WatchCache> cache;
  };

  client::Client& client_;
  std::deque<Kept> caches_;
  std::deque<Controller> controllers_;
  bool started_ = false;
};

}  // namespace hearth::reconcile
