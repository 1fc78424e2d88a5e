// Gives a claim its sandbox: a warm one with one write, or a cold one with one, and what the claim
// brings along.
#pragma once

#include <functional>
#include <string>

#include "controllers/claim_finder.h"
#include "controllers/claim_metrics.h"
#include "controllers/claim_source.h"
#include "controllers/options.h"
#include "pool/allocator.h"
#include "pool/outfit.h"
#include "reconcile/event_recorder.h"
#include "reconcile/reconciler.h"

namespace hearth::controllers {

using model::Json;

struct Supply {
  client::Object sandbox;   // null: not yet
  bool is_silent = false;   // nothing is to be said about it
  bool is_waiting = false;  // in line
};

class ClaimSupplier {
 public:
  struct Parts {
    client::Client& client;
    pool::Allocator& allocator;
    ClaimFinder& finder;
    ClaimSources& sources;
    ClaimMetrics& metrics;
    reconcile::EventRecorder& events;
    const Clock& clock;
    pool::Outfitter* outfitter = nullptr;  // null: nobody reaches into sandboxes
  };
  // Everything in them must outlive it. `wake` brings a claim back to a worker; any thread.
  ClaimSupplier(Parts parts, std::function<void(const model::Key&)> wake);

  // For a claim that has none. Throws ClaimProblem, Error.
  Supply obtain(const Json& claim, ClaimMemory& memory);

  // A warm one for a claim that is not kept yet, Ready and as it is wanted; whoever asks writes it.
  struct Reserved {
    pool::Hold hold;
    Json patch;  // by which it becomes the claim's
  };
  // Nothing: whatever it is that speaks against one, a pass over the claim will say. Asks nobody.
  std::optional<Reserved> reserve(const Json& claim, const client::Object& pool);
  // It was written.
  void tell_reserved(const Json& claim, const Reserved& reserved, const client::Object& sandbox,
                     Duration took);

  // Lets a warm sandbox's pod have what the claim brings along, if it needs it and is Ready.
  // Returns the pod's uid; empty: nothing was done.
  std::string outfit(const Json& claim, const Json& sandbox);

 private:
  struct Attempt;

  Supply obtain_warm(Attempt& attempt);
  Supply when_empty(Attempt& attempt);
  void wait_in_line(Attempt& attempt, const Json& pool, Duration patience);
  client::Object obtain_cold(Attempt& attempt);
  client::Object adopt_promised(Attempt& attempt);
  client::Object adopt(Attempt& attempt, pool::Hold hold);
  std::optional<pool::Hold> take(Attempt& attempt);
  static pool::Wish wish_for(const Json& claim, const Json& pool,
                             const client::Object& own_template);
  bool can_outfit(const Json& sandbox);
  std::optional<Json> pod_of(const Json& sandbox);
  void make_volumes(const Json& claim, const Json& sandbox);
  void tell_adopted(const Json& claim, const Json& sandbox, std::string_view pool);

  Parts parts_;
  std::function<void(const model::Key&)> wake_;
};

}  // namespace hearth::controllers
