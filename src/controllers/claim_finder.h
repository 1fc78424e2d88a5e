// Which Sandbox is a claim's already. The Sandbox itself is the record: it is controlled by the
// claim, by uid. Caches may be behind; nothing may be made for a claim before this says none.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/watch_cache.h"
#include "controllers/claim_memory.h"

namespace hearth::controllers {

// The index of the cache of Sandboxes that this asks: client::owner_uids.
inline constexpr char kOwnerIndex[] = "claim-owner";

class ClaimFinder {
 public:
  // All must outlive it.
  ClaimFinder(client::Client& client, client::WatchCache& sandboxes, const Clock& clock);

  // Claims made before this may have got something from another process: the server is asked.
  void begin(Time now);

  // Null for none. Of several, which two leaders at a time can make, one stays and the others are
  // deleted. Throws Error where a Sandbox of the claim's name is somebody else's.
  client::Object find(const Json& claim, ClaimMemory& memory);
  // Every one of them, for a claim that is over.
  std::vector<client::Object> find_all(const Json& claim, ClaimMemory& memory);
  // The one that another controller meant to adopt for the claim and is still to be had; null for
  // none.
  client::Object find_promised(const Json& claim);

  // What our own write left, as long as the cache does not know better; null: nothing of that kind.
  client::Object find_bound(const Json& claim, ClaimMemory& memory);
  // As the server has it; null where it is gone or not the claim's.
  client::Object read_own(const Json& claim, std::string_view name);

 private:
  // Claim's uid to Sandbox's name.
  using Names = std::multimap<std::string, std::string, std::less<>>;

  // What the cache does not show, of a claim that may have it all the same.
  std::vector<client::Object> ask_for_own(const Json& claim, const ClaimMemory& memory);
  std::vector<client::Object> list_own(const Json& claim);
  std::vector<client::Object> find_from_before(const Json& claim);
  Names list_from_before();
  bool is_from_before(const Json& claim) const;
  void drop_old_policy(const Json& claim, ClaimMemory& memory);
  void list_old_policies();
  client::Object keep_one(const Json& claim, std::vector<client::Object> own);

  client::Client& client_;
  client::WatchCache& sandboxes_;
  const Clock& clock_;
  std::atomic<Time> began_;
  std::mutex listing_;  // guards from_before_, also while the server is asked for it
  // Of all claims, since this process began: each asking for its own would have the server look
  // through all Sandboxes as often as there are claims.
  std::optional<Names> from_before_;
  std::once_flag are_policies_listed_;
  std::map<std::string, model::Key, std::less<>> old_policies_;  // by the uid of their claim
};

}  // namespace hearth::controllers
