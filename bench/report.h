// Results, for programs and for people.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::bench {

// One case of one subject. Every subject has the same cases, so that anyone can take ratios.
struct Row {
  std::string bench_case;
  std::string subject;
  std::optional<double> p50_us;
  std::optional<double> p99_us;
  std::optional<double> per_s;
  std::optional<double> kib;
  std::optional<double> writes;     // to the API
  std::optional<unsigned> workers;  // that gave the best rate
  std::size_t n = 0;

  // What ratios are taken of: the median, the rate, the memory or the writes.
  std::optional<double> headline() const;
};

// A subject that has no row in a case, and why.
struct Skip {
  std::string bench_case;  // empty: all of them
  std::string subject;
  std::string reason;

  bool operator==(const Skip&) const = default;
};

// An array, one row a line: {"case": C, "subject": S, "p50_us": x, "p99_us": y, "per_s": z, "kib":
// k, "writes": w, "n": n}, those that apply.
std::string to_json(const std::vector<Row>& rows);

// A block a case, in the order of the rows; the last column but one is the ratio to the first of
// the case whose name begins with `reference`.
std::string format_tables(const std::vector<Row>& rows, std::string_view reference);

std::string format_skips(const std::vector<Skip>& skips);

}  // namespace hearth::bench
