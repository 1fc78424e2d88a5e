// SandboxClaims: each gets a sandbox of its own, warm if there is one, and keeps it to its end.
//
// A claim becomes Ready with three writes: the client's own, one on the Sandbox, one on the claim's
// status (docs/adr/0018-one-write-claims.md); or with two that are kept together, where the server
// asks before it keeps a claim (docs/adr/0027-claims-are-bound-as-they-are-made.md). The Sandbox is
// the record of what was decided.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "client/welcome.h"
#include "controllers/claim_finder.h"
#include "controllers/claim_memory.h"
#include "controllers/claim_metrics.h"
#include "controllers/claim_source.h"
#include "controllers/claim_status.h"
#include "controllers/claim_supply.h"
#include "controllers/options.h"
#include "metrics/registry.h"
#include "pool/allocator.h"
#include "reconcile/controller.h"
#include "reconcile/event_recorder.h"
#include "reconcile/reconciler.h"

namespace hearth::controllers {

// Indexes that its caches need; before they start.
client::WatchCacheOptions claim_cache_options();          // of SandboxClaims
client::WatchCacheOptions claim_sandbox_cache_options();  // of Sandboxes

class ClaimReconciler final : public reconcile::Reconciler {
 public:
  struct Parts {
    client::Client& client;
    client::WatchCache& claims;
    client::WatchCache& sandboxes;
    client::WatchCache& pools;
    client::WatchCache& templates;
    pool::Allocator& allocator;
    reconcile::EventRecorder& events;
    metrics::Registry& metrics;
    const Clock& clock;
    pool::Outfitter* outfitter = nullptr;  // null: nobody reaches into sandboxes
  };
  // Everything in them must outlive it.
  ClaimReconciler(Parts parts, Options options);
  ClaimReconciler(const ClaimReconciler&) = delete;
  ClaimReconciler& operator=(const ClaimReconciler&) = delete;
  ~ClaimReconciler() override;

  // Declares what it looks at, and where claims that waited come back to. Before the caches start.
  void watch(reconcile::Controller& controller);
  // This process decides from now on; claims from before are looked up. Once at start is implied.
  void begin();
  // Nobody waits any more. After the controller has stopped, before it goes.
  void stop();

  reconcile::Next reconcile(const model::Key& key) override;

  // What a claim gets as it is made (client/welcome.h): a warm sandbox, if that is all that it
  // needs. From begin() until stop().
  std::optional<client::Welcome> welcome(const Json& claim);

 private:
  struct Pass;
  // Where claims that waited come back to. Who is called may be called when this is gone.
  struct Wakeup {
    std::mutex mutex;  // guards queue
    reconcile::Queue* queue = nullptr;
  };

  ClaimSituation situation_of(const Json& claim, const Json& sandbox) const;
  bool is_settled(const Json& claim, ClaimMemory& memory, Time now);
  reconcile::Next look_at(Pass& pass);
  void work(Pass& pass);
  void keep_up(Pass& pass);
  reconcile::Next settle(Pass& pass);

  reconcile::Next announce_end(Pass& pass);
  reconcile::Next end(Pass& pass);
  void delete_claim(Pass& pass, std::string_view policy);
  void delete_sandboxes(Pass& pass);

  enum class Written { nothing, status, conflict };
  Written write_status(Pass& pass, const Json& status);
  void after_ready(Pass& pass, const Json& status);
  void measure(Pass& pass);
  void annotate(Pass& pass);

  struct Newborn;
  void tell_born(const Newborn& newborn, const Json& claim, const client::Object& sandbox);

  std::vector<model::Key> claims_of_pool(const Json& pool) const;
  std::vector<model::Key> claims_of_template(const Json& sandbox_template) const;

  Parts parts_;
  const Options options_;
  ClaimMemories memories_;
  ClaimMetrics metrics_;
  ClaimFinder finder_;
  ClaimSources sources_;
  std::atomic<bool> is_deciding_ = false;
  const std::shared_ptr<Wakeup> wakeup_ = std::make_shared<Wakeup>();
  ClaimSupplier supplier_;
};

}  // namespace hearth::controllers
