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
#include "model/json.h"

namespace hearth::gateway {

struct TableOptions {
  std::function<std::string(std::string_view id)> envd_token;
  std::function<std::string(std::string_view id)> traffic_token;
  // Told after a change that connections or waiting requests may care about: another state, or
  // gone. Without the table's lock; on the thread that brought the news.
  std::function<void(const RoutePtr& before, const RoutePtr& now)> on_change;
};

class Table {
 public:
  explicit Table(TableOptions options);

  // What is not newer than what is known is ignored.
  void put(const model::Json& sandbox);
  void remove(const model::Json& last);

  // Null for none.
  RoutePtr find_e2b(std::string_view id) const;
  RoutePtr find(std::string_view ns, std::string_view name) const;
  // Whose token made this signature; null for nobody's. Milliseconds with thousands of sandboxes.
  RoutePtr find_signer(std::string_view method, std::string_view query) const;
  std::size_t size() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  using Routes = std::unordered_map<std::string, RoutePtr, Hash, std::equal_to<>>;

  bool is_stale(const Route& next, const RoutePtr& before) const;
  // False for old news.
  bool exchange(const std::shared_ptr<Route>& next, RoutePtr& before);
  void put_id(const RoutePtr& next);
  void bury(const std::string& uid);

  const TableOptions options_;
  mutable std::mutex mutex_;  // guards what follows
  Routes by_key_;             // by "NS/NAME"
  Routes by_id_;              // of E2B's sandboxes; who was there first keeps an id
  // The uids of those that went, the oldest first: late news of one do not bring it back.
  std::deque<std::string> graves_;
  std::unordered_set<std::string> buried_;
  std::uint64_t last_serial_ = 0;
};

// All but serial, tokens and activity. Pure.
void read_route(const model::Json& sandbox, Route& route);

}  // namespace hearth::gateway
