// What people may set about the controllers: the flags of agent-sandbox-controller, and ours.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/json.h"

namespace hearth::tracing {
class Tracer;
}

namespace hearth::controllers {

// For an engine whose pods are often ready within milliseconds: one status write instead of two.
inline constexpr Duration kEmbeddedStatusWindow = std::chrono::milliseconds(20);

// Claims of rollouts are often over in less.
inline constexpr Duration kEmbeddedAnnotationDelay = std::chrono::seconds(1);

struct Options {
  std::string cluster_domain = "cluster.local";
  unsigned sandbox_workers = 100;
  unsigned claim_workers = 50;
  unsigned pool_workers = 1;
  unsigned template_workers = 1;
  unsigned most_batch = 300;    // of sandboxes that a pool makes in one go
  unsigned refill_threads = 8;  // of one pool, making or ending sandboxes at once
  Duration replenish_delay{};   // 0: none
  double most_refill_rate = 0;  // a second and pool; 0: any
  Duration readiness_grace = std::chrono::minutes(5);
  Duration unschedulable_recheck = std::chrono::minutes(1);
  bool warm_pool_eviction = true;  // idle pods may be evicted by the autoscaler
  Duration write_behind{};         // 0: pod metadata is written at once
  // A status that says no more than "not ready yet" waits this long for a better one, 1 s at most.
  // 0: it is written at once, as people know it from clusters.
  Duration transitional_status_window{};
  // How long pools that fill up, and the upkeep of sandboxes that run, let claims go first that
  // come in quick succession. 0: not at all.
  Duration patience = std::chrono::milliseconds(250);
  bool sandbox_events = true;
  bool claim_events = true;
  bool claim_observability_annotations = true;
  // How long after Ready they are written. Claims that are gone by then cost no write for them.
  Duration annotation_delay{};
  std::vector<std::string> label_domains = {"sandbox.users.io"};  // of additionalPodMetadata
  // Only pods and Services with the tracking label are kept in memory.
  bool caches_by_label = false;
  // The node that pods are bound to as they are made; empty: a scheduler does it.
  std::string node;
  // Whether that node takes the pod; one that it does not is left to the scheduler, who says why.
  // None: it takes all.
  std::function<bool(const model::Json& pod)> gives_place = {};
  // Who is told of passes; null: nobody.
  tracing::Tracer* tracer = nullptr;
  // The image that pods get their guest from (pod_guest.h); empty: they get none.
  std::string guest_image;
};

// For one machine whose pods start in milliseconds, and whose API is in this process: fewer workers
// than on a cluster, and no writes but those that somebody reads.
inline Options embedded_options(const std::string& node) {
  Options options;
  options.sandbox_workers = 8;
  options.claim_workers = 8;
  options.pool_workers = 2;
  options.transitional_status_window = kEmbeddedStatusWindow;
  options.annotation_delay = kEmbeddedAnnotationDelay;
  options.node = node;
  return options;
}

}  // namespace hearth::controllers
