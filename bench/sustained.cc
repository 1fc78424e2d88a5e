#include "bench/sustained.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "bench/interrupt.h"
#include "bench/memory.h"

namespace hearth::bench {
namespace {

constexpr unsigned kWorkers[] = {1, 2, 4};
constexpr unsigned kLongSteps = 10;

// How many lives `workers` threads get through in `time`.
struct Slice {
  std::size_t lives = 0;
  double seconds = 0;
};

// Throws the first Error of any worker.
Slice run_slice(Subject& subject, unsigned workers, Duration time) {
  std::vector<std::unique_ptr<Work>> cycles;
  for (unsigned i = 0; i < workers; ++i) cycles.push_back(subject.make_cycles());
  std::atomic<std::size_t> count = 0;
  std::vector<std::exception_ptr> failures(workers);
  const Moment begin = now();
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < workers; ++i) {
      threads.emplace_back([&, i] {
        try {
          while (now() - begin < time && !was_interrupted()) {
            cycles[i]->do_once();
            ++count;
          }
        } catch (const Error&) {
          failures[i] = std::current_exception();
        }
      });
    }
  }
  const double seconds = us_between(begin, now()) / 1e6;
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return {.lives = count, .seconds = seconds};
}

Row best_of(std::string_view subject, const std::map<unsigned, Slice>& sums) {
  Row best{.bench_case = kSustained, .subject = std::string(subject)};
  for (const auto& [workers, sum] : sums) {
    const double rate = static_cast<double>(sum.lives) / sum.seconds;
    if (best.per_s && rate <= *best.per_s) continue;
    best.per_s = rate;
    best.workers = workers;
    best.n = sum.lives;
  }
  return best;
}

unsigned best_workers(const Results& results) {
  for (const Row& row : results.rows) {
    if (row.bench_case == kSustained && row.subject == "hearth" && row.workers) return *row.workers;
  }
  return 1;
}

}  // namespace

void measure_sustained(const Entries& entries, const Effort& effort, Results& results) {
  std::map<std::string_view, std::map<unsigned, Slice>> sums;
  std::map<std::string_view, std::string> failures;
  for (unsigned slice = 0; slice < effort.slices; ++slice) {
    for (const unsigned workers : kWorkers) {
      for (const Entry& entry : entries) {
        if (!entry.kind->sustained || failures.contains(entry.kind->name)) continue;
        check_interrupts();
        try {
          const Slice done = run_slice(*entry.subject, workers, effort.slice);
          Slice& sum = sums[entry.kind->name][workers];
          sum.lives += done.lives;
          sum.seconds += done.seconds;
        } catch (const Error& error) {
          failures[entry.kind->name] = error.what();
        }
      }
    }
  }
  check_interrupts();
  for (const Entry& entry : entries) {
    if (!entry.kind->sustained) continue;
    if (const auto failure = failures.find(entry.kind->name); failure != failures.end())
      results.skip(kSustained, entry.kind->name, failure->second);
    else
      results.rows.push_back(best_of(entry.kind->name, sums[entry.kind->name]));
  }
}

void run_long(const Entries& entries, const Effort& effort, const Engine& engine,
              const Results& results) {
  const auto found = std::ranges::find(entries, std::string_view("hearth"),
                                       [](const Entry& entry) { return entry.kind->name; });
  if (found == entries.end()) fail(Code::unavailable, "there is no engine for a long run");
  const unsigned workers = best_workers(results);
  const auto print_line = [&](unsigned step, const std::string& rate) {
    const std::string line =
        fmt::format("{:>4}{:>12}{:>18}{:>12}{:>9}{:>9}\n", step, rate, process_kib(engine.pid()),
                    meminfo_kib("Slab"), count_mounts(engine.pid()), count_cgroups());
    std::fputs(line.c_str(), stdout);
    std::fflush(stdout);
  };
  std::fputs(fmt::format("long run of hearth, {} workers, a line every {:g} s\n"
                         "{:>4}{:>12}{:>18}{:>12}{:>9}{:>9}\n",
                         workers, std::chrono::duration<double>(effort.long_step).count(), "step",
                         "per s", "runtime Pss KiB", "Slab KiB", "mounts", "cgroups")
                 .c_str(),
             stdout);
  print_line(0, "");
  for (unsigned step = 1; step <= kLongSteps; ++step) {
    const Slice slice = run_slice(*found->subject, workers, effort.long_step);
    check_interrupts();
    print_line(step, fmt::format("{:.1f}", static_cast<double>(slice.lives) / slice.seconds));
  }
  std::fputs("\n", stdout);
}

}  // namespace hearth::bench
