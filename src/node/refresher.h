// Files of running pods that are made of objects follow those objects.
//
//   config maps, secrets ──watch──▶ pods that mount them ──┐
//   a pod's own labels and annotations ────────────────────┼──▶ plan the files again ──▶ runtime
//   every minute: tokens, and whatever a watch missed ─────┘
//
// What cannot be read any more (a secret that was deleted) stays as it is inside, and an event says
// why. The runtime compares: files that are the same are not replaced.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/watch_cache.h"
#include "node/plan.h"
#include "reconcile/controller.h"
#include "reconcile/event_recorder.h"
#include "runtime/runtime.h"

namespace hearth::node {

class Refresher final : public reconcile::Reconciler {
 public:
  // All must outlive it. `pods` are those of this node, and is not started yet.
  Refresher(client::Client& client, runtime::Runtime& runtime, Planner& planner,
            client::WatchCache& pods, reconcile::EventRecorder& events);
  Refresher(const Refresher&) = delete;
  Refresher& operator=(const Refresher&) = delete;
  ~Refresher() override { stop(); }

  // When `pods` has synced. The watches begin and nobody waits for them.
  void start();
  // Idempotent.
  void stop();

  reconcile::Next reconcile(const model::Key& key) override;

 private:
  void follow(client::WatchCache& objects, std::string_view kind);
  void refresh(const Json& pod, const Json& container, const std::string& sandbox);
  void note(const Json& pod, const std::string& problem);

  runtime::Runtime& runtime_;
  Planner& planner_;
  client::WatchCache& pods_;
  reconcile::EventRecorder& events_;
  client::WatchCache config_maps_;
  client::WatchCache secrets_;
  reconcile::Controller controller_;
};

}  // namespace hearth::node
