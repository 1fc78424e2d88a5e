// All objects of a kind, kept up to date by a watch: what controllers read instead of asking.
//
// Begins with a streaming list where the server has it, otherwise with a list; then a watch, and
// again from the last version whenever that ends. What was missed (410, errors) makes it list
// again: what is there meanwhile stays, and handlers hear the difference. A thread of its own.
//
// Objects are shared and never change: an update is another object. Thread-safe.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "client/client.h"

namespace hearth::model {
class LabelSelector;
}

namespace hearth::client {

// The values under which an object is found. Pure.
using IndexFunction = std::function<std::vector<std::string>(const Json& object)>;
// The uids of metadata.ownerReferences.
std::vector<std::string> owner_uids(const Json& object);

// Called one at a time, in the order of events, on the cache's thread, when the cache has the
// change already. What they throw is logged, and no more. They may read the cache, not stop it.
struct CacheHandlers {
  std::function<void(const Object& now)> on_add = {};
  std::function<void(const Object& before, const Object& now)> on_update = {};
  std::function<void(const Object& last)> on_delete = {};
};

struct WatchCacheOptions {
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  std::map<std::string, IndexFunction, std::less<>> indexes;
  // Between tries that fail.
  Duration first_pause = std::chrono::milliseconds(500);
  Duration most_pause = std::chrono::seconds(30);
  Duration watch_time = std::chrono::minutes(5);
};

class WatchCache {
 public:
  // The client must outlive it.
  WatchCache(Client& client, ResourceId resource, WatchCacheOptions options = {});
  WatchCache(const WatchCache&) = delete;
  WatchCache& operator=(const WatchCache&) = delete;
  ~WatchCache();

  // Before start(). An index that is there already stays as it is.
  void add_handlers(CacheHandlers handlers);
  void add_index(std::string name, const IndexFunction& function);
  // Called before a change is taken, on the cache's thread; may wait while others have a better use
  // for the processor. What comes meanwhile is taken in one go.
  void set_give_way(std::function<void(const std::stop_token& stop)> give_way);
  void start();
  // Idempotent. A list that is under way is waited for. What was read stays readable.
  void stop();

  // Whether everything that was there at first is here and handlers have heard of it.
  bool is_synced() const;
  // Waits for it; false: the time is over or it was called off.
  bool wait_synced(Duration patience, std::stop_token stop = {}) const;

  // Null for none. A cluster-scoped kind has the namespace "".
  Object find(std::string_view ns, std::string_view name) const;
  // By namespace (empty: all), in the order of namespaces and names.
  std::vector<Object> list(std::string_view ns = {}) const;
  std::vector<Object> select(const model::LabelSelector& selector, std::string_view ns = {}) const;
  // Throws Error(internal) for an index that is none.
  std::vector<Object> find_by_index(std::string_view index, std::string_view value) const;

 private:
  using Objects = std::map<std::string, Object, std::less<>>;  // by "NS/NAME"
  using Index = std::map<std::string, std::set<std::string>, std::less<>>;
  struct Round;

  void run(const std::stop_token& stop);
  void turn(Round& round, const std::stop_token& stop);
  void follow(Round& round, const std::stop_token& stop);
  void take(Round& round, Event event);
  void list_anew(Round& round);

  void replace_all(const Objects& now);
  void put(const std::string& key, const Object& now);
  void drop(const std::string& key, const Object& last);
  Object exchange(const std::string& key, Object now);
  void tell_add(const Object& now) const;
  void tell_delete(const Object& last) const;

  Client& client_;
  const ResourceId resource_;
  WatchCacheOptions options_;  // does not change after start()
  std::vector<CacheHandlers> handlers_;
  std::function<void(const std::stop_token& stop)> give_way_;
  mutable std::mutex mutex_;  // guards what follows, down to the thread
  mutable std::condition_variable_any synced_;
  bool is_synced_ = false;
  Objects objects_;
  std::map<std::string, Index, std::less<>> indexes_;
  std::jthread thread_;
};

}  // namespace hearth::client
