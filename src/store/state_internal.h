// What the store has in memory: the objects, their history, and who watches it.
//
// One lock for all of it, held for as long as pointers are copied. Only one thread at a time
// publishes; everything else may be called from anywhere.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/store.h"

namespace hearth::store {

class State {
 public:
  // Of Options, the ends of history.
  struct Limits {
    Duration keep_for{};
    std::size_t keep_changes = 0;
    std::size_t keep_bytes = 0;
  };

  State(Limits limits, Revision revision, Revision oldest);

  // While a file is read, before anything else: objects as they were at `oldest`.
  void load(const ObjectPtr& object);
  void unload(const ObjectPtr& object);

  // Makes changes the present: their revisions follow the current one without a gap. Returns, in
  // the order in which they may go, the revisions whose rows are of no use any more. What is
  // published is on disk already: there is no way back, so nothing may throw.
  std::vector<Revision> publish(const std::vector<ChangePtr>& changes, Time now) noexcept;

  ObjectPtr find(const Key& key) const;
  Snapshot list(const ListQuery& query) const;
  std::optional<Snapshot> list_at(const ListQuery& query, Revision at) const;
  Revision revision() const { return revision_.load(std::memory_order_acquire); }
  Revision oldest() const;
  bool wait_for(Revision revision, Duration time) const;

  void add(Watch& watch);
  void remove(Watch& watch);
  Taken take(Watch& watch, std::size_t most);
  // Wakes those who have not been told of changes that could wait.
  void tell_late() noexcept;

 private:
  using PlaceView = std::pair<std::string_view, std::string_view>;  // namespace, name
  static PlaceView place_of(const Key& key) { return {key.ns, key.name}; }

  // An object is its own key: no copy of it in the tree.
  struct ByPlace {
    using is_transparent = void;
    static PlaceView place(const ObjectPtr& object) { return place_of(object->key); }
    static PlaceView place(const PlaceView& view) { return view; }
    bool operator()(const auto& a, const auto& b) const { return place(a) < place(b); }
  };
  using Objects = std::set<ObjectPtr, ByPlace>;
  // What is different from the present: null for what was not there.
  using Differences = std::map<PlaceView, ObjectPtr>;

  struct Shelf {
    Objects objects;
    std::deque<ChangePtr> changes;
    std::vector<Watch*> watches;
  };

  const Shelf* find_shelf(const std::string& resource) const;
  Differences differences_since(const Shelf& shelf, Revision at) const;
  static Snapshot collect(const Shelf& shelf, const ListQuery& query, const Differences& then);
  void apply(const ChangePtr& change);
  void rouse(const Shelf& shelf, const Change& change, std::vector<Watch*>& woken);
  std::vector<ChangePtr> trim(Time now);
  bool is_over(Time now) const;

  const Limits limits_;

  // Held while wake() functions run, and taken to remove a watch; before mutex_.
  std::mutex wake_mutex_;
  mutable std::mutex mutex_;  // guards all below, and what watches say is its
  mutable std::condition_variable advanced_;
  std::atomic<Revision> revision_;  // changes under the lock
  Revision oldest_;
  // By resource. That of the name "" has no objects, but all changes, and the watches of all.
  std::map<std::string, Shelf> shelves_;
  std::vector<Watch*> owed_;                         // with all that are, and some that are no more
  std::deque<std::pair<Time, Revision>> published_;  // when, and the last revision of the batch
  std::size_t history_bytes_ = 0;
};

}  // namespace hearth::store
