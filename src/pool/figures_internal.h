// What the allocator tells Prometheus.
//
// Pools are labels once they have had a member. Names that somebody merely asked for are all
// counted as one: anybody can make up any number of them.
#pragma once

#include <map>
#include <mutex>

#include "metrics/registry.h"
#include "model/meta.h"

namespace hearth::pool {

struct PoolFigures {
  metrics::Counter& hits;
  metrics::Counter& misses;
  metrics::Counter& conflicts;
  metrics::Counter& waits;
  metrics::Counter& refusals;  // of those who waited
};

class Figures {
 public:
  explicit Figures(metrics::Registry& registry);

  // Not with the allocator's lock held: who renders the registry has its lock and asks for that
  // one.
  void meet(const model::Key& pool);
  PoolFigures& of(const model::Key& pool);

  metrics::Histogram& take;
  metrics::Histogram& wait;
  metrics::Histogram& commit;

 private:
  PoolFigures make(const model::Key& pool);

  metrics::Registry& registry_;
  std::mutex mutex_;                         // guards pools_, not what is in it
  std::map<model::Key, PoolFigures> pools_;  // only grows
  PoolFigures unknown_;
};

}  // namespace hearth::pool
