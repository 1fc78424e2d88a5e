// Objects as trees of JSON, shared within this process.
//
// Who writes an object has its tree at hand. It goes along with the text for a while, so that the
// caches of controllers, the answer and the next write need not read the text again: that took
// longer than everything else about a write together. Those who look hold it; when the last one
// lets go it is gone, and whoever comes then reads the text. Its metadata.managedFields are not in
// it: half of an object, which only the next write asks for (patch/owners.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

#include "model/json.h"
#include "patch/owners.h"
#include "schema/schema.h"
#include "store/object.h"

namespace hearth::apiserver {

using model::Json;
using JsonPtr = std::shared_ptr<const Json>;

class Tree final : public store::Companion {
 public:
  // `object` as it is kept; a copy, if it was made in a Scratch: anyone may copy it again, at any
  // time. `checked_by`: the schema that it was pruned, defaulted and validated with; null: it has
  // been converted since.
  Tree(Json object, patch::Owners owners, schema::SchemaPtr checked_by);

  void settle(store::Revision revision) noexcept override;
  const Json& json() const { return json_; }
  const patch::Owners& owners() const { return owners_; }
  const schema::SchemaPtr& checked_by() const { return checked_by_; }

 private:
  Json json_;
  patch::Owners owners_;
  schema::SchemaPtr checked_by_;
};

// The tree of this object, in the version it is kept in; null: nobody holds it.
std::shared_ptr<const Tree> tree_of(const store::Object& object);

// Holds the last trees until their watchers have come. Thread-safe.
class RecentTrees {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  void keep(std::shared_ptr<const Tree> tree, Moment now);
  // Of those that watchers have had time to come for. Taking a tree apart is a tenth of a write:
  // this is for somebody for whom nobody waits.
  void let_go_of_old(Moment now);
  std::size_t size() const;

 private:
  struct Kept {
    Moment since;
    std::shared_ptr<const Tree> tree;
  };

  mutable std::mutex mutex_;  // guards kept_
  std::deque<Kept> kept_;     // the oldest first
};

}  // namespace hearth::apiserver
