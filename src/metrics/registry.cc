#include "metrics/registry.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace hearth::metrics {
namespace {

bool is_name(std::string_view text) {
  const auto is_start = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
  };
  const auto is_inside = [&](char c) { return is_start(c) || (c >= '0' && c <= '9'); };
  return !text.empty() && is_start(text.front()) && std::ranges::all_of(text, is_inside);
}

// Help has quotes as they are; values of labels do not.
std::string escaped(std::string_view text, bool with_quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && with_quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

// `a="1",b="2"`
std::string text_of(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) {
    HEARTH_ASSERT(is_name(key));
    if (!text.empty()) text += ',';
    text += fmt::format("{}=\"{}\"", key, escaped(value, true));
  }
  return text;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

template <typename T>
void write_line(std::string& out, std::string_view name, std::string_view labels, const T& value) {
  out += name;
  if (!labels.empty()) out += fmt::format("{{{}}}", labels);
  out += fmt::format(" {}\n", value);
}

void write_histogram(std::string& out, const std::string& name, const std::string& labels,
                     const Histogram& histogram) {
  const std::vector<std::uint64_t> counts = histogram.cumulative();
  const std::string before = labels.empty() ? "" : labels + ",";
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool is_last = i == histogram.buckets().size();
    const std::string end = is_last ? "+Inf" : number(histogram.buckets()[i]);
    write_line(out, name + "_bucket", fmt::format("{}le=\"{}\"", before, end), counts[i]);
  }
  write_line(out, name + "_sum", labels, number(histogram.sum()));
  write_line(out, name + "_count", labels, counts.back());
}

std::string_view word(Kind kind) {
  if (kind == Kind::counter) return "counter";
  return kind == Kind::gauge ? "gauge" : "histogram";
}

template <typename T, typename... Args>
T& find_or_make(std::map<std::string, std::unique_ptr<T>>& all, std::string labels,
                Args&&... args) {
  std::unique_ptr<T>& found = all[std::move(labels)];
  if (!found) found = std::make_unique<T>(std::forward<Args>(args)...);
  return *found;
}

}  // namespace

Histogram::Histogram(std::vector<double> buckets)
    : buckets_(std::move(buckets)), counts_(buckets_.size() + 1) {
  HEARTH_ASSERT(std::ranges::is_sorted(buckets_));
}

void Histogram::observe(double value) {
  const auto bucket = std::ranges::lower_bound(buckets_, value);
  counts_[static_cast<std::size_t>(bucket - buckets_.begin())].fetch_add(1,
                                                                         std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<std::uint64_t> Histogram::cumulative() const {
  std::vector<std::uint64_t> counts;
  std::uint64_t all = 0;
  for (const std::atomic<std::uint64_t>& count : counts_) {
    all += count.load(std::memory_order_relaxed);
    counts.push_back(all);
  }
  return counts;
}

std::uint64_t Histogram::count() const {
  return cumulative().back();
}

std::vector<double> latency_buckets() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
}

std::vector<double> exponential_buckets(double first, double factor, unsigned count) {
  std::vector<double> buckets;
  for (double end = first; buckets.size() < count; end *= factor) buckets.push_back(end);
  return buckets;
}

Registry::Family& Registry::family(std::string_view name, std::string_view help, Kind kind) {
  HEARTH_ASSERT(is_name(name));
  const auto found = families_.find(name);
  if (found == families_.end()) {
    Family& made = families_[std::string(name)];
    made.kind = kind;
    made.help = help;
    return made;
  }
  HEARTH_ASSERT(found->second.kind == kind);
  return found->second;
}

Counter& Registry::counter(std::string_view name, std::string_view help, const Labels& labels) {
  const std::lock_guard lock(mutex_);
  return find_or_make(family(name, help, Kind::counter).counters, text_of(labels));
}

Gauge& Registry::gauge(std::string_view name, std::string_view help, const Labels& labels) {
  const std::lock_guard lock(mutex_);
  return find_or_make(family(name, help, Kind::gauge).gauges, text_of(labels));
}

Histogram& Registry::histogram(std::string_view name, std::string_view help,
                               std::vector<double> buckets, const Labels& labels) {
  const std::lock_guard lock(mutex_);
  return find_or_make(family(name, help, Kind::histogram).histograms, text_of(labels),
                      std::move(buckets));
}

void Registry::collect(std::string_view name, std::string_view help, Kind kind, Collect collect) {
  HEARTH_ASSERT(kind != Kind::histogram);
  const std::lock_guard lock(mutex_);
  family(name, help, kind).collects.push_back(std::move(collect));
}

std::string Registry::render() const {
  std::string out;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, family] : families_) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(family.help, false), name,
                       word(family.kind));
    for (const auto& [labels, counter] : family.counters) {
      write_line(out, name, labels, counter->value());
    }
    for (const auto& [labels, gauge] : family.gauges) {
      write_line(out, name, labels, number(gauge->value()));
    }
    for (const auto& [labels, histogram] : family.histograms) {
      write_histogram(out, name, labels, *histogram);
    }
    for (const Collect& collect : family.collects) {
      for (const Sample& sample : collect()) {
        write_line(out, name, text_of(sample.labels), number(sample.value));
      }
    }
  }
  return out;
}

}  // namespace hearth::metrics
