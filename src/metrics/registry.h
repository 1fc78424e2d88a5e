// Numbers for Prometheus: counters, gauges and histograms with labels, and their text (0.0.4).
//
//   metrics::Counter& claimed = registry.counter("claims_total", "Claims served.", {{"how",
//   "warm"}}); claimed.add();
//
// Asking for the same name and labels again gives the same one. Those whose labels are known at
// start are asked for once and kept; adding to them takes no lock. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace hearth::metrics {

// In the order in which they are written. Values may be any text.
using Labels = std::vector<std::pair<std::string, std::string>>;

enum class Kind { counter, gauge, histogram };

class Counter {
 public:
  void add(std::uint64_t by = 1) { value_.fetch_add(by, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_ = 0;
};

class Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  void add(double by) { value_.fetch_add(by, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_ = 0;
};

class Histogram {
 public:
  // Upper ends, rising; one without end is added.
  explicit Histogram(std::vector<double> buckets);

  void observe(double value);
  // In seconds.
  void observe(Duration time) { observe(std::chrono::duration<double>(time).count()); }

  const std::vector<double>& buckets() const { return buckets_; }
  // How many were at most the bucket's end; of all for the last, which has none.
  std::vector<std::uint64_t> cumulative() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }
  std::uint64_t count() const;

 private:
  const std::vector<double> buckets_;
  std::vector<std::atomic<std::uint64_t>> counts_;  // each of its bucket alone
  std::atomic<double> sum_ = 0;
};

// Seconds, from a millisecond to ten.
std::vector<double> latency_buckets();
// `count` of them, each `factor` times the one before.
std::vector<double> exponential_buckets(double first, double factor, unsigned count);

// One value that is only known when somebody asks.
struct Sample {
  Labels labels;
  double value = 0;
};
using Collect = std::function<std::vector<Sample>()>;

class Registry {
 public:
  Registry() = default;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  ~Registry() = default;

  // They live as long as the registry. Names are ours: a wrong one, or one that is taken by
  // something of another kind, is a mistake in the program. Help counts the first time.
  Counter& counter(std::string_view name, std::string_view help, const Labels& labels = {});
  Gauge& gauge(std::string_view name, std::string_view help, const Labels& labels = {});
  Histogram& histogram(std::string_view name, std::string_view help, std::vector<double> buckets,
                       const Labels& labels = {});
  // Asked at each render(), with the registry's lock held: short, and it must not call back. What
  // it uses must outlive the last render().
  void collect(std::string_view name, std::string_view help, Kind kind, Collect collect);

  // Everything, by name.
  std::string render() const;

 private:
  struct Family {
    Kind kind = Kind::counter;
    std::string help;
    // By their labels as text.
    std::map<std::string, std::unique_ptr<Counter>> counters;
    std::map<std::string, std::unique_ptr<Gauge>> gauges;
    std::map<std::string, std::unique_ptr<Histogram>> histograms;
    std::vector<Collect> collects;
  };

  Family& family(std::string_view name, std::string_view help, Kind kind);

  mutable std::mutex mutex_;  // guards families_
  std::map<std::string, Family, std::less<>> families_;
};

inline constexpr char kTextType[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace hearth::metrics
