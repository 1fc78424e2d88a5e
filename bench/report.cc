#include "bench/report.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/json_text.h"

namespace hearth::bench {
namespace {

// A column of the tables: its heading, and how a row fills it (nothing: it does not apply).
struct Column {
  std::string_view heading;
  std::optional<double> (*value)(const Row&);
  int digits = 0;
};

constexpr Column kColumns[] = {
    {.heading = "p50 us", .value = [](const Row& row) { return row.p50_us; }, .digits = 1},
    {.heading = "p99 us", .value = [](const Row& row) { return row.p99_us; }, .digits = 1},
    {.heading = "per s", .value = [](const Row& row) { return row.per_s; }, .digits = 1},
    {.heading = "workers",
     .value = [](const Row& row) -> std::optional<double> {
       if (!row.workers) return std::nullopt;
       return static_cast<double>(*row.workers);
     }},
    {.heading = "KiB", .value = [](const Row& row) { return row.kib; }, .digits = 1},
    {.heading = "writes", .value = [](const Row& row) { return row.writes; }, .digits = 1},
};

std::string cell(const Column& column, const Row& row) {
  const auto value = column.value(row);
  return fmt::format("{:>11}", value ? fmt::format("{:.{}f}", *value, column.digits) : "");
}

std::string ratio(const Row& row, const std::optional<double>& reference) {
  const auto own = row.headline();
  if (!own || !reference || *reference <= 0) return "";
  const double times = *own / *reference;
  return fmt::format("{:.{}f}", times, times < 0.1 ? 4 : 2);
}

std::string format_table(const std::vector<Row>& rows, std::string_view reference) {
  std::vector<Column> columns;
  std::ranges::copy_if(kColumns, std::back_inserter(columns), [&](const Column& column) {
    return std::ranges::any_of(rows, [&](const Row& row) { return column.value(row).has_value(); });
  });
  const auto found = std::ranges::find_if(
      rows, [&](const Row& row) { return row.subject.starts_with(reference); });
  const auto base = found == rows.end() ? std::nullopt : found->headline();
  const std::string_view base_name = found == rows.end() ? reference : found->subject;

  std::string text = fmt::format("{:<26}", rows.front().bench_case);
  for (const Column& column : columns) text += fmt::format("{:>11}", column.heading);
  text += fmt::format("{:>17}{:>8}\n", fmt::format("/ {}", base_name), "n");
  for (const Row& row : rows) {
    text += fmt::format("  {:<24}", row.subject);
    for (const Column& column : columns) text += cell(column, row);
    text += fmt::format("{:>17}{:>8}\n", ratio(row, base), row.n);
  }
  return text;
}

void put(std::string& line, std::string_view name, const std::optional<double>& value) {
  if (value) line += fmt::format(", {}: {:.1f}", json_quote(name), *value);
}

}  // namespace

std::optional<double> Row::headline() const {
  if (p50_us) return p50_us;
  if (per_s) return per_s;
  return kib ? kib : writes;
}

std::string to_json(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    std::string line = fmt::format("{{\"case\": {}, \"subject\": {}", json_quote(row.bench_case),
                                   json_quote(row.subject));
    put(line, "p50_us", row.p50_us);
    put(line, "p99_us", row.p99_us);
    put(line, "per_s", row.per_s);
    put(line, "kib", row.kib);
    put(line, "writes", row.writes);
    if (row.workers) line += fmt::format(", \"workers\": {}", *row.workers);
    line += fmt::format(", \"n\": {}}}", row.n);
    text += (text.empty() ? " " : ",\n ") + line;
  }
  return text.empty() ? "[]\n" : "[\n" + text + "\n]\n";
}

std::string format_tables(const std::vector<Row>& rows, std::string_view reference) {
  std::string text;
  std::vector<Row> block;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    block.push_back(rows[i]);
    const bool last = i + 1 == rows.size() || rows[i + 1].bench_case != rows[i].bench_case;
    if (!last) continue;
    text += (text.empty() ? "" : "\n") + format_table(block, reference);
    block.clear();
  }
  return text;
}

std::string format_skips(const std::vector<Skip>& skips) {
  std::string text;
  for (const Skip& skip : skips) {
    text += fmt::format("skipped: {}{}{}: {}\n", skip.subject,
                        skip.bench_case.empty() ? "" : " in ", skip.bench_case, skip.reason);
  }
  return text;
}

}  // namespace hearth::bench
