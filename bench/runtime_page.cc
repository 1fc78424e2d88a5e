#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>

#include "bench/entry.h"
#include "bench/idle.h"
#include "bench/interleave.h"
#include "bench/machine.h"
#include "bench/page.h"
#include "bench/statistics.h"
#include "bench/subject.h"
#include "bench/sustained.h"
#include "bench/workshop.h"

namespace hearth::bench {
namespace {

using namespace std::chrono_literals;

constexpr const char* kSmallFiles = "small_files";

// Long enough for caches to cool, and for a pool to be full again.
constexpr Duration kGap = 20ms;
// Without gaps: most of what a subject leaves for the kernel to do behind is then its own burden.
// Fewer than the pool has shells, which is filled again only after them.
constexpr unsigned kInARow = 10;
static_assert(kInARow < Workshop::kWarm);

// A case whose figures are times: measured with the turns close to each other, and with gaps.
struct LatencyCase {
  const char* name;
  bool Kind::* takes_part;
  std::unique_ptr<Work> (Subject::*make)();
};

constexpr std::array<LatencyCase, 4> kLatencyCases = {{
    {.name = "cold_cycle", .takes_part = &Kind::cold_cycle, .make = &Subject::make_cycles},
    {.name = "cold_cycle_pooled", .takes_part = &Kind::pooled_cycle, .make = &Subject::make_cycles},
    {.name = "exec_live", .takes_part = &Kind::exec_live, .make = &Subject::make_execs},
    {.name = "pause_resume", .takes_part = &Kind::pause_resume, .make = &Subject::make_pauses},
}};

std::string gap_case(const std::string& name) {
  return name + std::string(kGapSuffix);
}

void say(const std::string& what) {
  std::fputs((what + " ...\n").c_str(), stderr);
}

class RuntimePage {
 public:
  explicit RuntimePage(const PageOptions& options)
      : options_(options), effort_(effort_for(options.rounds)) {}

  Results run();

 private:
  void find_subjects();
  void describe_method() const;
  void measure_latencies(const LatencyCase& latency_case);
  void measure_small_files();
  void try_extra(const char* name, bool wanted, const std::function<void()>& measure);

  bool wants(std::string_view bench_case) const {
    return options_.only.empty() || options_.only == bench_case;
  }
  // Those who take part, each with work of its own, which must outlive them.
  std::vector<Contender> make_contenders(const LatencyCase& latency_case,
                                         std::vector<std::unique_ptr<Work>>& works);
  void add_times(const std::string& bench_case, std::vector<Contender>& contenders);

  PageOptions options_;
  Effort effort_;
  Workshop workshop_;
  Entries entries_;
  Results results_;
};

Results RuntimePage::run() {
  find_subjects();
  describe_method();
  for (const LatencyCase& latency_case : kLatencyCases) {
    if (wants(latency_case.name)) measure_latencies(latency_case);
  }
  if (wants(kSmallFiles)) measure_small_files();
  if (wants(kSustained)) {
    say(kSustained);
    measure_sustained(entries_, effort_, results_);
  }
  if (wants(kIdle)) {
    say(kIdle);
    measure_idle(entries_, effort_, results_);
  }
  try_extra(kMany, options_.many > 0,
            [&] { measure_many(workshop_.engine(), effort_, options_.many, results_); });
  try_extra("long run", options_.long_run,
            [&] { run_long(entries_, effort_, workshop_.engine(), results_); });
  entries_.clear();
  return std::move(results_);
}

// What fails here must not take the other figures with it.
void RuntimePage::try_extra(const char* name, bool wanted, const std::function<void()>& measure) {
  if (!wanted) return;
  say(name);
  try {
    measure();
  } catch (const Error& error) {
    results_.skip(name, "hearth", error.what());
  }
}

void RuntimePage::find_subjects() {
  for (const Kind& kind : all_kinds()) {
    try {
      entries_.push_back({.kind = &kind, .subject = kind.make(workshop_)});
      const std::string version = entries_.back().subject->version();
      std::fputs(
          fmt::format("{:<14} {}{}{}\n", kind.name, version, version.empty() ? "" : "; ", kind.what)
              .c_str(),
          stdout);
    } catch (const Error& error) {
      results_.skip("", kind.name, error.what());
    }
  }
}

void RuntimePage::describe_method() const {
  const auto meaning = [](std::string_view name, const std::string& text) {
    return fmt::format("  {:<18} {}\n", name, text);
  };
  std::string text = fmt::format(
      "\n"
      "All take turns, in another order each round: {} turns for each, {} in a row, or one after\n"
      "{} ms of nothing where the case ends in '{}'; those for warming up do not count. Medians\n"
      "and p99 of one interleaved run; '/ hearth' is the ratio to hearth's figure. The program is\n"
      "the same for all: static, without a libc, it writes one byte and ends. So is its root\n"
      "folder: hearth has a copy as an image of one layer.\n",
      options_.rounds, kInARow, kGap / 1ms, kGapSuffix);
  text += meaning("cold_cycle", "create, run the program, destroy until nothing is left");
  text += meaning("cold_cycle_pooled",
                  fmt::format("the same with shells made ahead; in nobody's time the pool is "
                              "filled\n{:21}again after each row of turns",
                              ""));
  text += meaning("exec_live", "the program in a sandbox that runs, until its end is known");
  text += meaning("pause_resume", fmt::format("a sandbox with {} processes stands still, goes on",
                                              kPausedProcesses));
  text += meaning(kSmallFiles,
                  fmt::format("files of 1 KiB made a second, {} at once: in hearth's writable "
                              "layer,\n{:21}which is memory; on the host's disk for native and "
                              "(bound to /tmp)\n{:21}bwrap; in /dev/shm for native_memory",
                              kFilesAtOnce, "", ""));
  text += meaning(kSustained, "whole lives a second, for the best of 1, 2 and 4 workers");
  text += meaning(kIdle,
                  fmt::format("processes (Pss, hearth's engine included) and kernel memory of an\n"
                              "{:21}idle sandbox: the middle one of {} batches of {}",
                              "", effort_.batches, effort_.batch));
  text += meaning(kIdleAvailable, "the same, by what the machine has available (MemAvailable)");
  text +=
      "hearth is asked over its socket by this one process, while each peer pays for the start of\n"
      "a command line program (dynamic loading, about 1 ms); hearth_cli pays it too. Namespaces "
      "of\n"
      "all: user, pid, mount, network, ipc, uts, cgroup. Limits of memory, cpu and pids: hearth,\n"
      "crun and runc, not bwrap. A writable layer and a seccomp filter: hearth only.\n";
  if (workshop_.hides_v2())
    text +=
        "The v2 hierarchy of cgroups is hidden from the peers: crun 1.8 refuses to work beside "
        "it.\n";
  std::fputs((text + "\n").c_str(), stdout);
}

std::vector<Contender> RuntimePage::make_contenders(const LatencyCase& latency_case,
                                                    std::vector<std::unique_ptr<Work>>& works) {
  std::vector<Contender> contenders;
  for (const Entry& entry : entries_) {
    if (!(entry.kind->*latency_case.takes_part)) continue;
    try {
      works.push_back(((*entry.subject).*latency_case.make)());
      Work* const mine = works.back().get();
      contenders.push_back({.subject = std::string(entry.kind->name),
                            .take_turn = [mine] { return mine->do_once(); },
                            .recover = [mine] { mine->recover(); }});
    } catch (const Error& error) {
      results_.skip(latency_case.name, entry.kind->name, error.what());
    }
  }
  return contenders;
}

void RuntimePage::add_times(const std::string& bench_case, std::vector<Contender>& contenders) {
  for (Contender& contender : contenders) {
    if (!contender.failure.empty()) {
      results_.skip(bench_case, contender.subject, contender.failure);
      continue;
    }
    const Summary summary = summarize(contender.turns);
    contender.turns.clear();
    results_.rows.push_back({.bench_case = bench_case,
                             .subject = contender.subject,
                             .p50_us = summary.p50,
                             .p99_us = summary.p99,
                             .n = summary.count});
  }
}

void RuntimePage::measure_latencies(const LatencyCase& latency_case) {
  say(latency_case.name);
  std::vector<std::unique_ptr<Work>> works;
  std::vector<Contender> contenders = make_contenders(latency_case, works);
  const unsigned in_a_row = std::min(kInARow, options_.rounds);
  const unsigned rounds = (options_.rounds + in_a_row - 1) / in_a_row;
  interleave(contenders, {.warm_up = 1, .rounds = rounds, .in_a_row = in_a_row});
  add_times(latency_case.name, contenders);
  say(gap_case(latency_case.name));
  interleave(contenders, {.rounds = options_.rounds, .gap = kGap});
  add_times(gap_case(latency_case.name), contenders);
}

void RuntimePage::measure_small_files() {
  say(kSmallFiles);
  std::vector<std::unique_ptr<Work>> works;
  std::vector<Contender> contenders = make_contenders(
      {.name = kSmallFiles, .takes_part = &Kind::small_files, .make = &Subject::make_file_writes},
      works);
  interleave(contenders, {.warm_up = 1, .rounds = effort_.file_rounds});
  for (const Contender& contender : contenders) {
    if (!contender.failure.empty())
      results_.skip(kSmallFiles, contender.subject, contender.failure);
    else
      results_.rows.push_back({.bench_case = kSmallFiles,
                               .subject = contender.subject,
                               .per_s = quantile(contender.turns, 0.5),
                               .n = contender.turns.size()});
  }
}

std::string subjects_that(bool Kind::* take_part) {
  std::string names;
  for (const Kind& kind : all_kinds()) {
    if (kind.*take_part) names += fmt::format(" {}", kind.name);
  }
  return names;
}

void check_case(const std::string& name) {
  if (name.empty() || name == kSmallFiles || name == kSustained || name == kIdle) return;
  if (std::ranges::find(kLatencyCases, name, &LatencyCase::name) != kLatencyCases.end()) return;
  fail(Code::invalid, "there is no case '{}'; see --list, and leave '{}' away", name, kGapSuffix);
}

}  // namespace

std::string list_runtime_page() {
  std::string text;
  for (const LatencyCase& latency_case : kLatencyCases) {
    const std::string subjects = subjects_that(latency_case.takes_part);
    text += fmt::format("{}:{}\n", latency_case.name, subjects);
    text += fmt::format("{}:{}\n", gap_case(latency_case.name), subjects);
  }
  text += fmt::format("{}:{}\n", kSmallFiles, subjects_that(&Kind::small_files));
  text += fmt::format("{}:{}\n", kSustained, subjects_that(&Kind::sustained));
  text += fmt::format("{}:{}\n", kIdle, subjects_that(&Kind::idle));
  text += fmt::format("{}:{}\n", kIdleAvailable, subjects_that(&Kind::idle));
  return text;
}

Results run_runtime_page(const PageOptions& options) {
  check_case(options.only);
  // Before parts of it are hidden from the peers.
  std::fputs(describe_machine().c_str(), stdout);
  return RuntimePage(options).run();
}

}  // namespace hearth::bench
