// What this process knows about claims that no object says yet, or that its caches are behind with.
//
// All of it may be lost at any time: the objects say what was done. It keeps a cache that is behind
// from making a claim look as if it had nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/guarded.h"
#include "client/watch_cache.h"
#include "controllers/claim_ticket.h"
#include "model/meta.h"

namespace hearth::controllers {

using model::Json;

// Everything that decides what becomes of a claim that is Ready, by its versions. While it stays
// the same there is nothing to do: our own writes come back as events, two for each claim. It says
// nothing of pods, which claims with an outfit are about too.
struct ClaimSituation {
  std::string claim;
  std::string sandbox;
  std::int64_t pool_generation = 0;  // pools tell how full they are all the time
  client::Object sandbox_template;

  bool operator==(const ClaimSituation&) const = default;
};

// What was decided as the claim was made.
struct ClaimBirth {
  client::Object sandbox;
  ClaimSituation situation;
};

// Used by one worker at a time: the one that has the claim's key. All but `birth`.
struct ClaimMemory {
  std::string uid;
  Time first_seen;
  // The server was asked whether the claim has a sandbox from before our time.
  bool is_asked = false;
  bool is_tidied = false;  // leavings of older versions are gone
  // A write was made for it whose answer never came: the server has to be asked.
  bool is_in_doubt = false;
  // Its sandbox as our write left it, until the cache shows it; and since when.
  client::Object bound;
  Time bound_at;
  bool is_measured = false;             // its latencies were observed
  std::string trace;                    // the annotation of its trace, if it began here
  std::optional<Time> first_ready;      // nothing: before our time
  std::optional<Time> annotating;       // when its annotations are due
  std::string annotated_for;            // the sandbox that they were written with
  std::unique_ptr<ClaimTicket> ticket;  // in line for a sandbox
  bool is_hoping = false;               // there for its grace alone, and says nothing of it
  // What a pass left that had nothing more to do, and when it wanted to look again.
  std::optional<ClaimSituation> settled;
  std::optional<Time> look_again;
  // Told by whoever made the claim, while a worker may have it already.
  Guarded<std::optional<ClaimBirth>> birth;

  void take_over_birth(Time now);
};

class ClaimMemories {
 public:
  // The same one until it is forgotten, or until there is another claim of that name.
  std::shared_ptr<ClaimMemory> of(const Json& claim, Time now);
  // The same for a claim that is on its way to be kept: news of its sandbox may come before its
  // own.
  std::shared_ptr<ClaimMemory> of_newborn(const Json& claim, Time now);
  void forget(const model::Key& key);
  // For who sees no such claim. Of one that is to come nothing is forgotten: it returns when to
  // look again.
  std::optional<Time> forget_missing(const model::Key& key, Time now);
  // Only if it is of this claim.
  void forget(const model::Key& key, std::string_view uid);
  void forget_all();
  std::size_t size() const;

 private:
  struct Entry {
    std::shared_ptr<ClaimMemory> memory;
    std::optional<Time> expected_until;  // it has not been seen yet
  };
  std::shared_ptr<ClaimMemory> look_up(const Json& claim, Time now,
                                       std::optional<Time> expected_until);

  mutable std::mutex mutex_;  // guards memories_, not what is in their memories
  std::map<model::Key, Entry> memories_;
};

}  // namespace hearth::controllers
