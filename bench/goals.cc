#include "bench/goals.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

namespace hearth::bench {
namespace {

constexpr std::array<Goal, 12> kRuntimeGoals = {{
    {.bench_case = "cold_cycle",
     .subject = "hearth",
     .peer = "bwrap",
     .wanted = 1.0 / 4,
     .words = "at most 1/4 of bwrap"},
    {.bench_case = "cold_cycle",
     .subject = "hearth",
     .peer = "crun",
     .wanted = 1.0 / 8,
     .words = "at most 1/8 of crun"},
    {.bench_case = "cold_cycle",
     .subject = "hearth",
     .peer = "runc",
     .wanted = 1.0 / 25,
     .words = "at most 1/25 of runc"},
    {.bench_case = "cold_cycle_pooled",
     .subject = "hearth_pooled",
     .peer = "bwrap",
     .wanted = 1.0 / 7,
     .words = "at most 1/7 of bwrap"},
    {.bench_case = "cold_cycle_pooled",
     .subject = "hearth_pooled",
     .peer = "crun",
     .wanted = 1.0 / 14,
     .words = "at most 1/14 of crun"},
    {.bench_case = "exec_live",
     .subject = "hearth",
     .peer = "fork_exec",
     .wanted = 1.15,
     .words = "at most 1.15 x fork_exec"},
    {.bench_case = "exec_live",
     .subject = "hearth",
     .peer = "crun",
     .wanted = 1.0 / 70,
     .words = "at most 1/70 of crun"},
    {.bench_case = "sustained",
     .subject = "hearth",
     .peer = "crun",
     .bound = Bound::at_least,
     .wanted = 5,
     .words = "at least 5 x crun"},
    {.bench_case = "sustained",
     .subject = "hearth",
     .peer = "bwrap",
     .bound = Bound::at_least,
     .wanted = 3,
     .words = "at least 3 x bwrap"},
    {.bench_case = "idle",
     .subject = "hearth",
     .peer = "crun",
     .wanted = 0.8,
     .words = "at most 0.8 x crun"},
    {.bench_case = "pause_resume",
     .subject = "hearth",
     .peer = "crun",
     .wanted = 1.0 / 50,
     .words = "at most 1/50 of crun"},
    {.bench_case = "small_files",
     .subject = "hearth",
     .peer = "native",
     .bound = Bound::at_least,
     .wanted = 0.7,
     .words = "at least 0.7 x native"},
}};

constexpr std::array<Goal, 1> kGuestGoals = {{
    {.bench_case = "cell",
     .subject = "hearth",
     .peer = "python3_c_pass",
     .wanted = 1.0 / 150,
     .words = "at most 1/150 of python3"},
}};

constexpr std::array<Goal, 5> kKubeGoals = {{
    {.bench_case = "writes_1",
     .subject = "hearth_store",
     .peer = "etcd",
     .bound = Bound::at_least,
     .wanted = 5,
     .words = "store at least 5 x etcd"},
    {.bench_case = "writes_16",
     .subject = "hearth_store",
     .peer = "etcd",
     .bound = Bound::at_least,
     .wanted = 5,
     .words = "store at least 5 x etcd"},
    {.bench_case = "writes_64",
     .subject = "hearth_store",
     .peer = "etcd",
     .bound = Bound::at_least,
     .wanted = 5,
     .words = "store at least 5 x etcd"},
    {.bench_case = "writes_256",
     .subject = "hearth_store",
     .peer = "etcd",
     .bound = Bound::at_least,
     .wanted = 5,
     .words = "store at least 5 x etcd"},
    {.bench_case = "start",
     .subject = "hearth",
     .peer = "",
     .wanted = 200'000,
     .words = "at most 200 ms"},
}};

constexpr std::array<Goal, 6> kClaimsGoals = {{
    {.bench_case = "claim",
     .subject = "hearth",
     .peer = "api_write",
     .wanted = 2,
     .words = "at most 2 x api_write"},
    {.bench_case = "claim",
     .subject = "hearth",
     .peer = "",
     .wanted = 3,
     .words = "p99 at most 3 x p50",
     .figure = Figure::p99_by_p50},
    {.bench_case = "claim_writes",
     .subject = "hearth",
     .peer = "",
     .wanted = 3,
     .words = "at most 3 writes"},
    {.bench_case = "claim_burst_500",
     .subject = "hearth",
     .peer = "",
     .bound = Bound::at_least,
     .wanted = 2'000,
     .words = "at least 2,000 a second",
     .figure = Figure::rate},
    {.bench_case = "claim_burst_500",
     .subject = "hearth",
     .peer = "",
     .wanted = 3,
     .words = "p99 at most 3 x p50",
     .figure = Figure::p99_by_p50},
    {.bench_case = "claim_sustained",
     .subject = "hearth",
     .peer = "",
     .bound = Bound::at_least,
     .wanted = 500,
     .words = "at least 500 a second",
     .figure = Figure::rate},
}};

constexpr std::array<Goal, 5> kE2bGoals = {{
    {.bench_case = "create_burst",
     .subject = "hearth",
     .peer = "echo",
     .wanted = 4,
     .words = "at most 4 x echo"},
    {.bench_case = "create_first_exec",
     .subject = "hearth",
     .peer = "crun",
     .wanted = 1.0 / 40,
     .words = "at most 1/40 of crun"},
    {.bench_case = "create_exec_burst",
     .subject = "hearth",
     .peer = "crun",
     .wanted = 1.0 / 40,
     .words = "at most 1/40 of crun"},
    {.bench_case = "proxy_per_core",
     .subject = "hearth",
     .peer = "nginx",
     .bound = Bound::at_least,
     .wanted = 1,
     .words = "at least nginx"},
    {.bench_case = "proxy",
     .subject = "hearth",
     .peer = "nginx",
     .wanted = 1,
     .words = "p99 at most nginx's",
     .figure = Figure::p99},
}};

std::optional<double> figure_of(const Row& row, Figure figure) {
  if (figure == Figure::rate) return row.per_s;
  if (figure == Figure::p99) return row.p99_us;
  if (figure == Figure::headline) return row.headline();
  if (!row.p50_us || !row.p99_us || *row.p50_us <= 0) return std::nullopt;
  return *row.p99_us / *row.p50_us;
}

std::optional<double> find_figure(const std::vector<Row>& rows, std::string_view bench_case,
                                  std::string_view subject, Figure figure_kind) {
  const auto found = std::ranges::find_if(
      rows, [&](const Row& row) { return row.bench_case == bench_case && row.subject == subject; });
  const auto figure = found == rows.end() ? std::nullopt : figure_of(*found, figure_kind);
  // Nothing that is measured here can be nothing, or less.
  return figure && *figure > 0 ? figure : std::nullopt;
}

// Ours by the peer's; without a peer, ours.
std::optional<double> find_ratio(const Goal& goal, const std::vector<Row>& rows,
                                 const std::string& bench_case) {
  const auto ours = find_figure(rows, bench_case, goal.subject, goal.figure);
  if (goal.peer.empty()) return ours;
  const auto theirs = find_figure(rows, bench_case, goal.peer, goal.figure);
  if (!ours || !theirs) return std::nullopt;
  return *ours / *theirs;
}

// "1/6.10" is easier to hold against "1/4" than 0.164 is.
std::string ratio_text(double ratio, double wanted, bool is_ratio) {
  if (!is_ratio) return fmt::format("{:.0f}", ratio);
  return wanted < 0.5 ? fmt::format("1/{:.2f}", 1 / ratio) : fmt::format("{:.2f} x", ratio);
}

struct Verdict {
  bool reached = false;
  std::string words;
};

Verdict judge(const Goal& goal, const std::optional<double>& ratio) {
  if (!ratio) return {.words = "not measured"};
  // Above 1: better than wanted.
  const double margin = goal.bound == Bound::at_most ? goal.wanted / *ratio : *ratio / goal.wanted;
  const bool reached = margin >= 1;
  const bool is_ratio = !goal.peer.empty() || goal.figure == Figure::p99_by_p50;
  return {.reached = reached,
          .words = fmt::format("{:>8}  {} by {:.2f} x", ratio_text(*ratio, goal.wanted, is_ratio),
                               reached ? "reached" : "missed", reached ? margin : 1 / margin)};
}

bool has_gap_case(const std::vector<Row>& rows, const std::string& gap_case) {
  return std::ranges::find(rows, gap_case, &Row::bench_case) != rows.end();
}

}  // namespace

std::span<const Goal> runtime_goals() {
  return kRuntimeGoals;
}

std::span<const Goal> guest_goals() {
  return kGuestGoals;
}

std::span<const Goal> kube_goals() {
  return kKubeGoals;
}

std::span<const Goal> claims_goals() {
  return kClaimsGoals;
}

std::span<const Goal> e2b_goals() {
  return kE2bGoals;
}

std::string format_goals(std::span<const Goal> goals, const std::vector<Row>& rows) {
  std::string text =
      fmt::format("{:<20}{:<26}{:<28}{}\n", "goals", "wanted", "measured", "with gaps");
  std::size_t reached = 0;
  for (const Goal& goal : goals) {
    const std::string bench_case(goal.bench_case);
    const std::string gap_case = bench_case + std::string(kGapSuffix);
    const Verdict verdict = judge(goal, find_ratio(goal, rows, bench_case));
    if (verdict.reached) ++reached;
    std::string line =
        fmt::format("  {:<18}{:<26}{:<28}", goal.bench_case, goal.words, verdict.words);
    if (has_gap_case(rows, gap_case)) line += judge(goal, find_ratio(goal, rows, gap_case)).words;
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text + fmt::format("  {} of {} reached\n", reached, goals.size());
}

}  // namespace hearth::bench
