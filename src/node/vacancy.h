// Who still finds a place on this node: what pods ask for, counted as they come and go.
//
// A place that was given counts until its pod is seen, so that any number of threads may ask.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "client/watch_cache.h"
#include "model/meta.h"
#include "node/fit.h"

namespace hearth::node {

class Vacancy {
 public:
  // `bound` has the pods of the node. All must outlive it, and the caches start after it was made.
  Vacancy(const client::WatchCache& nodes, client::WatchCache& bound, const Clock& clock,
          std::string node);

  // Empty: the place is the pod's, which should be bound now. Otherwise why_not() of node/fit.h.
  std::string take(const model::Json& pod);

 private:
  struct Promise {
    Resources resources;
    Time end;  // of who never came
  };

  void see(const model::Json& pod);
  void forget(const model::Json& pod);
  Resources used_by_others(const model::Key& key, Time now);

  const client::WatchCache& nodes_;
  const Clock& clock_;
  const std::string node_;
  std::mutex mutex_;  // guards what follows
  std::map<model::Key, Resources> seen_;
  Resources sum_;  // of seen_
  std::map<model::Key, Promise> promised_;
};

}  // namespace hearth::node
