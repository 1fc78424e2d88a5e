// What is said about a list of samples.
#pragma once

#include <cstddef>
#include <vector>

namespace hearth::bench {

// The smallest sample that is not below a share `q` (0 to 1) of them: always one that was really
// measured. Of nothing: 0.
double quantile(std::vector<double> samples, double q);

struct Summary {
  double p50 = 0;
  double p99 = 0;
  std::size_t count = 0;
};
Summary summarize(const std::vector<double>& samples);

}  // namespace hearth::bench
