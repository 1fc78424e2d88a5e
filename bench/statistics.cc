#include "bench/statistics.h"

#include <algorithm>
#include <cmath>

namespace hearth::bench {

double quantile(std::vector<double> samples, double q) {
  if (samples.empty()) return 0;
  const double rank = std::ceil(q * static_cast<double>(samples.size()));
  const auto index =
      static_cast<std::size_t>(std::clamp(rank - 1, 0.0, static_cast<double>(samples.size() - 1)));
  const auto wanted = samples.begin() + static_cast<std::ptrdiff_t>(index);
  std::ranges::nth_element(samples, wanted);
  return *wanted;
}

Summary summarize(const std::vector<double>& samples) {
  return {.p50 = quantile(samples, 0.50), .p99 = quantile(samples, 0.99), .count = samples.size()};
}

}  // namespace hearth::bench
