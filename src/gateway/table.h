// Which sandboxes there are and in what state, from the watch of Sandboxes and from front doors
// that have just written one. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gateway/route.h"
#include "gateway/signature.h"
#include "model/json.h"

namespace hearth::metrics {
class Gauge;
}

namespace hearth::gateway {

struct TableOptions {
  std::function<std::string(const model::Key& sandbox)> envd_token;
  std::function<std::string(const model::Key& sandbox)> traffic_token;
  // Told after a change that connections or waiting requests may care about: another state,
  // somebody's who was nobody's, or gone. Without the table's lock; on the thread that brought the
  // news.
  std::function<void(const RoutePtr& before, const RoutePtr& now)> on_change;
  metrics::Gauge* entries = nullptr;  // how many there are; null: nobody counts
};

class Table {
 public:
  explicit Table(TableOptions options);

  // What is not newer than what is known is ignored: false.
  bool put(const model::Json& sandbox);
  bool remove(const model::Json& last);

  // Null for none.
  RoutePtr find_e2b(std::string_view id) const;
  RoutePtr find(std::string_view ns, std::string_view name) const;
  // Whether there was an E2B sandbox of this id not long ago, and is none now. Ids are never used
  // again: nobody has to wait for the watch to bring it.
  bool is_gone(std::string_view id) const;
  // Whose token made this signature; null for nobody's. Milliseconds with thousands of sandboxes.
  RoutePtr find_signer(const Signature& signature) const;
  std::size_t size() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  using Routes = std::unordered_map<std::string, RoutePtr, Hash, std::equal_to<>>;
  using Names = std::unordered_set<std::string, Hash, std::equal_to<>>;
  struct Grave {
    std::string uid;
    std::string id;  // empty for what was not E2B's
  };

  void put_tokens(Route& next, const RoutePtr& known) const;
  bool is_stale(const Route& next, const RoutePtr& before) const;
  // False for old news.
  bool exchange(const std::shared_ptr<Route>& next, RoutePtr& before);
  void put_id(const RoutePtr& next);
  void bury(Grave grave);

  const TableOptions options_;
  mutable std::mutex mutex_;  // guards what follows
  Routes by_key_;             // by "NS/NAME"
  Routes by_id_;              // of E2B's sandboxes; who was there first keeps an id
  // Those that went, the oldest first: late news of one do not bring it back.
  std::deque<Grave> graves_;
  Names buried_uids_;
  Names buried_ids_;
  std::uint64_t last_serial_ = 0;
};

// All but serial, tokens and activity. Pure.
void read_route(const model::Json& sandbox, Route& route);

}  // namespace hearth::gateway
