#include "bench/idle.h"

#include <cstdio>
#include <exception>

#include "bench/hearth_sandbox.h"
#include "bench/interrupt.h"
#include "bench/memory.h"
#include "bench/statistics.h"

namespace hearth::bench {
namespace {

struct Level {
  double used = 0;       // by the subject's processes and by the kernel
  double available = 0;  // on the whole machine
};

Level read_level(const IdleSandboxes& sandboxes) {
  return {.used = static_cast<double>(kernel_kib() + trees_kib(sandboxes.roots())),
          .available = static_cast<double>(meminfo_kib("MemAvailable"))};
}

struct Measured {
  const Entry* entry = nullptr;
  std::unique_ptr<IdleSandboxes> sandboxes;
  std::vector<double> used;       // KiB a sandbox, one of each batch
  std::vector<double> available;  //
  std::string failure;
};

void add_batch(Measured& measured, const Effort& effort) {
  settle(effort.settling);
  const Level before = read_level(*measured.sandboxes);
  measured.sandboxes->add(effort.batch);
  settle(effort.settling);
  const Level after = read_level(*measured.sandboxes);
  measured.used.push_back((after.used - before.used) / effort.batch);
  measured.available.push_back((before.available - after.available) / effort.batch);
}

void add_rows(const char* bench_case, const std::vector<Measured>& all,
              std::vector<double> Measured::* kib, Results& results) {
  for (const Measured& measured : all) {
    const std::string_view subject = measured.entry->kind->name;
    const double middle = quantile(measured.*kib, 0.5);
    if (!measured.failure.empty())
      results.skip(bench_case, subject, measured.failure);
    else if (middle <= 0)  // others gave memory back meanwhile
      results.skip(bench_case, subject, "the machine is too busy to tell");
    else
      results.rows.push_back({.bench_case = bench_case,
                              .subject = std::string(subject),
                              .kib = middle,
                              .n = (measured.*kib).size()});
  }
}

}  // namespace

// By turns in batches, of which the middle one counts: what others do with memory meanwhile hits
// one of them. Nobody's sandboxes go before everybody's were measured: the kernel would serve the
// next subject from what it keeps of the last one's, and its memory would seem to be less.
void measure_idle(const Entries& entries, const Effort& effort, Results& results) {
  std::vector<Measured> all;
  for (const Entry& entry : entries) {
    if (!entry.kind->idle) continue;
    all.push_back({.entry = &entry, .sandboxes = nullptr});
    try {
      all.back().sandboxes = entry.subject->make_idle_sandboxes();
      // What is only made for the first one is no part of the price.
      all.back().sandboxes->add(1);
    } catch (const Error& error) {
      all.back().failure = error.what();
    }
  }
  for (unsigned batch = 0; batch < effort.batches; ++batch) {
    for (Measured& measured : all) {
      if (!measured.failure.empty()) continue;
      check_interrupts();
      try {
        add_batch(measured, effort);
      } catch (const Error& error) {
        measured.failure = error.what();
      }
    }
  }
  add_rows(kIdle, all, &Measured::used, results);
  add_rows(kIdleAvailable, all, &Measured::available, results);
}

void measure_many(const Engine& engine, const Effort& effort, unsigned count, Results& results) {
  runtime::RuntimeClient client(engine.state_dir());
  std::vector<std::string> ids;
  ids.reserve(count);
  settle(effort.settling);
  const auto available = static_cast<double>(meminfo_kib("MemAvailable"));
  std::exception_ptr failure;
  const Moment begin = now();
  try {
    while (ids.size() < count) {
      check_interrupts();
      ids.push_back(client.create(bench_spec()).sandbox.id);
    }
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  const double seconds = us_between(begin, now()) / 1e6;
  settle(effort.settling);
  const double taken = available - static_cast<double>(meminfo_kib("MemAvailable"));
  std::fputs(fmt::format("{} sandboxes alive: {:.1f} MiB in all, made in {:.1f} s\n", ids.size(),
                         taken / 1024, seconds)
                 .c_str(),
             stdout);
  for (const std::string& id : ids) client.destroy(id);
  if (failure) std::rethrow_exception(failure);
  results.rows.push_back({.bench_case = kMany,
                          .subject = "hearth",
                          .per_s = count / seconds,
                          .kib = taken / count,
                          .n = count});
}

}  // namespace hearth::bench
