#include "pool/figures_internal.h"

namespace hearth::pool {
namespace {

using metrics::exponential_buckets;

// A look into memory takes about a microsecond, a write to a disk of one's own some hundreds.
std::vector<double> take_buckets() {
  return exponential_buckets(1e-6, 2, 16);
}
std::vector<double> commit_buckets() {
  return exponential_buckets(50e-6, 2, 16);
}
std::vector<double> wait_buckets() {
  return exponential_buckets(100e-6, 2, 22);
}

}  // namespace

Figures::Figures(metrics::Registry& registry)
    : take(registry.histogram("hearth_allocator_take_seconds",
                              "What it takes to reserve a warm sandbox, or to find none.",
                              take_buckets())),
      wait(registry.histogram("hearth_allocator_wait_seconds",
                              "How long those waited who got a warm sandbox in the end.",
                              wait_buckets())),
      commit(registry.histogram("hearth_allocator_commit_seconds",
                                "The one write that hands a warm sandbox out, or fails to.",
                                commit_buckets())),
      registry_(registry),
      unknown_(make({})) {}

PoolFigures Figures::make(const model::Key& pool) {
  const metrics::Labels labels = {{"namespace", pool.ns}, {"pool", pool.name}};
  const auto counter = [&](std::string_view name, std::string_view help) -> metrics::Counter& {
    return registry_.counter(name, help, labels);
  };
  return {
      .hits = counter("hearth_allocator_hits_total", "Wishes that found a warm sandbox at once."),
      .misses = counter("hearth_allocator_misses_total", "Wishes that found none."),
      .conflicts = counter("hearth_allocator_conflicts_total",
                           "Warm sandboxes that somebody else had first."),
      .waits = counter("hearth_allocator_waits_total", "Wishes that went in line."),
      .refusals = counter("hearth_allocator_refusals_total",
                          "Waits that ended with nothing: out of time, or the pool went."),
  };
}

void Figures::meet(const model::Key& pool) {
  {
    const std::lock_guard lock(mutex_);
    if (pools_.contains(pool)) return;
  }
  const PoolFigures made = make(pool);
  const std::lock_guard lock(mutex_);
  pools_.emplace(pool, made);
}

PoolFigures& Figures::of(const model::Key& pool) {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(pool);
  return found == pools_.end() ? unknown_ : found->second;
}

}  // namespace hearth::pool
