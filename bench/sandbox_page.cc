#include <atomic>
#include <cstdio>
#include <exception>
#include <map>
#include <thread>

#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/memory.h"
#include "bench/page.h"
#include "bench/process.h"
#include "bench/statistics.h"
#include "bench/subject.h"
#include "bench/workshop.h"

namespace hearth::bench {
namespace {

using namespace std::chrono_literals;

constexpr const char* kFirstExec = "cold_create_first_exec";
constexpr const char* kWholeLife = "create_exec_destroy";
constexpr const char* kExecLive = "exec_live";
constexpr const char* kCycle = "cycle_per_s";
constexpr const char* kIdle = "idle_sandbox_kib";
constexpr const char* kAfterIdle = "_after_idle";

// Long enough for caches to cool and for the kernel's grace periods to be over.
constexpr Duration kGap = 30ms;
constexpr unsigned kWorkers[] = {1, 2, 4};

// How long the parts take that have no rounds, by how thorough the run shall be.
struct Effort {
  unsigned slices = 3;        // of each subject and number of workers
  Duration slice = 300ms;     //
  unsigned sandboxes = 100;   // idle ones, of each subject
  Duration settling = 300ms;  // for the kernel to free what it frees behind
};
Effort effort_for(unsigned rounds) {
  if (rounds >= 40) return {};
  return {.slices = 1, .slice = 100ms, .sandboxes = 5, .settling = 50ms};
}

struct Entry {
  const Kind* kind = nullptr;
  std::unique_ptr<Subject> subject;
};

void say(const std::string& what) {
  std::fputs((what + "\n").c_str(), stderr);
}

class SandboxPage {
 public:
  explicit SandboxPage(const PageOptions& options)
      : options_(options), effort_(effort_for(options.rounds)) {}

  Results run() {
    find_subjects();
    describe_method();
    measure_lives(/*gap=*/{}, "");
    measure_lives(kGap, kAfterIdle);
    measure_execs();
    measure_cycles();
    measure_memory();
    entries_.clear();
    return std::move(results_);
  }

 private:
  void find_subjects();
  void describe_method() const;
  void measure_lives(Duration gap, const std::string& suffix);
  void measure_execs();
  void measure_cycles();
  void measure_memory();

  void skip(const std::string& bench_case, std::string_view subject, const std::string& reason) {
    results_.skips.push_back(
        {.bench_case = bench_case, .subject = std::string(subject), .reason = reason});
  }
  void add_latencies(const std::string& bench_case, const std::vector<Contender>& contenders,
                     double Turn::* time);

  PageOptions options_;
  Effort effort_;
  Workshop workshop_;
  std::vector<Entry> entries_;
  Results results_;
};

void SandboxPage::find_subjects() {
  for (const Kind& kind : all_kinds()) {
    try {
      entries_.push_back({.kind = &kind, .subject = kind.make(workshop_)});
      const std::string version = entries_.back().subject->version();
      std::fputs(
          fmt::format("{:<11} {}{}{}\n", kind.name, version, version.empty() ? "" : "; ", kind.what)
              .c_str(),
          stdout);
    } catch (const Error& error) {
      skip("", kind.name, error.what());
    }
  }
}

void SandboxPage::describe_method() const {
  const std::string hidden = workshop_.hides_v2()
                                 ? "The v2 hierarchy of cgroups is hidden from the peers: crun 1.8 "
                                   "refuses to work beside it.\n"
                                 : "";
  const auto meaning = [](std::string_view name, std::string_view text) {
    return fmt::format("  {:<24} {}\n", name, text);
  };
  std::string text = fmt::format(
      "\n"
      "All take turns, in another order each round: {} rounds after 3 that do not count; medians\n"
      "and p99 of one interleaved run. '/ hearth' is the ratio to hearth's figure. The program is\n"
      "the same for all: static, without a libc, it writes one byte and ends. Peers have it in a\n"
      "minimal root folder; hearth gets it as stdin of the first command in image 'host', and as\n"
      "a copy in a sandbox that lives on.\n",
      options_.rounds);
  text += meaning(kFirstExec, "until the program has finished; for peers until its byte is there,");
  text += meaning("", "because their commands end only when the sandbox is gone");
  text += meaning(kWholeLife, "until nothing is left of the sandbox");
  text += meaning(kExecLive, "a command in a sandbox that runs, until its end is known");
  text += meaning(kCycle, "whole lives per second, for the best of 1, 2 and 4 workers");
  text +=
      meaning(kIdle, fmt::format("processes (Pss) and kernel memory of one of {} idle sandboxes",
                                 effort_.sandboxes));
  text += meaning(fmt::format("...{}", kAfterIdle),
                  fmt::format("the same, with {} ms of nothing before each turn", kGap / 1ms));
  text +=
      "hearth is asked over its socket by this one process, while each peer pays for the start of\n"
      "a command line program (dynamic loading, about 1 ms); hearth_cli pays it too. Namespaces "
      "of\n"
      "all: user, pid, mount, network, ipc, uts, cgroup. Limits of memory, cpu and pids: hearth,\n"
      "crun and runc, not bwrap. A writable layer and a seccomp filter: hearth only.\n";
  std::fputs((text + hidden + "\n").c_str(), stdout);
}

void SandboxPage::add_latencies(const std::string& bench_case,
                                const std::vector<Contender>& contenders, double Turn::* time) {
  for (const Contender& contender : contenders) {
    if (!contender.failure.empty()) {
      skip(bench_case, contender.subject, contender.failure);
      continue;
    }
    std::vector<double> times;
    for (const Turn& turn : contender.turns) times.push_back(turn.*time);
    const Summary summary = summarize(times);
    results_.rows.push_back({.bench_case = bench_case,
                             .subject = contender.subject,
                             .p50_us = summary.p50,
                             .p99_us = summary.p99,
                             .n = summary.count});
  }
}

void SandboxPage::measure_lives(Duration gap, const std::string& suffix) {
  say(fmt::format("{}{} ...", kFirstExec, suffix));
  std::vector<std::unique_ptr<Lives>> lives;
  std::vector<Contender> contenders;
  for (const Entry& entry : entries_) {
    if (!entry.kind->lives) continue;
    try {
      lives.push_back(entry.subject->make_lives());
      contenders.push_back(
          {.subject = std::string(entry.kind->name),
           .take_turn = [mine = lives.back().get()] { return mine->live_once(); }});
    } catch (const Error& error) {
      skip(kFirstExec + suffix, entry.kind->name, error.what());
    }
  }
  interleave(contenders, {.rounds = options_.rounds, .gap = gap});
  add_latencies(kFirstExec + suffix, contenders, &Turn::done_us);
  add_latencies(kWholeLife + suffix, contenders, &Turn::gone_us);
}

void SandboxPage::measure_execs() {
  std::vector<std::unique_ptr<LiveSandbox>> sandboxes;
  std::vector<Contender> contenders;
  for (const Entry& entry : entries_) {
    if (!entry.kind->execs) continue;
    try {
      sandboxes.push_back(entry.subject->make_live_sandbox());
      contenders.push_back(
          {.subject = std::string(entry.kind->name), .take_turn = [mine = sandboxes.back().get()] {
             return Turn{.done_us = mine->time_exec()};
           }});
    } catch (const Error& error) {
      skip(kExecLive, entry.kind->name, error.what());
    }
  }
  for (const bool idle : {false, true}) {
    const std::string bench_case = std::string(kExecLive) + (idle ? kAfterIdle : "");
    say(bench_case + " ...");
    interleave(contenders, {.rounds = options_.rounds, .gap = idle ? kGap : Duration()});
    add_latencies(bench_case, contenders, &Turn::done_us);
    for (Contender& contender : contenders) contender.turns.clear();
  }
}

// How many lives `workers` threads get through in `time`. Throws the first Error of any of them.
struct Slice {
  std::size_t lives = 0;
  double seconds = 0;
};
Slice run_slice(Subject& subject, unsigned workers, Duration time) {
  std::vector<std::unique_ptr<Lives>> lives;
  for (unsigned i = 0; i < workers; ++i) lives.push_back(subject.make_lives());
  std::atomic<std::size_t> count = 0;
  std::vector<std::exception_ptr> failures(workers);
  const Moment begin = now();
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < workers; ++i) {
      threads.emplace_back([&, i] {
        try {
          while (now() - begin < time && !was_interrupted()) {
            lives[i]->live_once();
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

void SandboxPage::measure_cycles() {
  say(fmt::format("{} ...", kCycle));
  std::map<std::string_view, std::map<unsigned, Slice>> sums;
  std::map<std::string_view, std::string> failures;
  for (unsigned slice = 0; slice < effort_.slices; ++slice) {
    for (const unsigned workers : kWorkers) {
      for (const Entry& entry : entries_) {
        if (!entry.kind->lives || failures.contains(entry.kind->name)) continue;
        check_interrupts();
        try {
          const Slice done = run_slice(*entry.subject, workers, effort_.slice);
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
  for (const Entry& entry : entries_) {
    if (const auto failure = failures.find(entry.kind->name); failure != failures.end()) {
      skip(kCycle, entry.kind->name, failure->second);
      continue;
    }
    Row best{.bench_case = kCycle, .subject = std::string(entry.kind->name)};
    for (const auto& [workers, sum] : sums[entry.kind->name]) {
      const double rate = static_cast<double>(sum.lives) / sum.seconds;
      if (best.per_s && rate <= *best.per_s) continue;
      best.per_s = rate;
      best.workers = workers;
      best.n = sum.lives;
    }
    if (best.per_s) results_.rows.push_back(best);
  }
}

// Nobody's sandboxes go before everybody's were measured: the kernel would serve the next subject
// from what it keeps of the last one's, and its memory would seem to be less.
void SandboxPage::measure_memory() {
  say(fmt::format("{} ...", kIdle));
  std::vector<std::unique_ptr<IdleSandboxes>> all;
  for (const Entry& entry : entries_) {
    if (!entry.kind->idles) continue;
    check_interrupts();
    try {
      std::this_thread::sleep_for(effort_.settling);
      const auto before = static_cast<double>(kernel_kib());
      all.push_back(entry.subject->make_idle_sandboxes(effort_.sandboxes));
      std::this_thread::sleep_for(effort_.settling);
      double kib = static_cast<double>(kernel_kib()) - before;
      for (const pid_t root : all.back()->pids()) {
        for (const pid_t pid : process_tree(root)) kib += static_cast<double>(process_kib(pid));
      }
      results_.rows.push_back({.bench_case = kIdle,
                               .subject = std::string(entry.kind->name),
                               .kib = kib / effort_.sandboxes,
                               .n = effort_.sandboxes});
    } catch (const Error& error) {
      skip(kIdle, entry.kind->name, error.what());
    }
  }
}

std::string subjects_that(bool Kind::* offers) {
  std::string names;
  for (const Kind& kind : all_kinds()) {
    if (kind.*offers) names += fmt::format(" {}", kind.name);
  }
  return names;
}

}  // namespace

std::string list_sandbox_page() {
  std::string text;
  for (const char* suffix : {"", kAfterIdle}) {
    text += fmt::format("{}{}:{}\n", kFirstExec, suffix, subjects_that(&Kind::lives));
    text += fmt::format("{}{}:{}\n", kWholeLife, suffix, subjects_that(&Kind::lives));
    text += fmt::format("{}{}:{}\n", kExecLive, suffix, subjects_that(&Kind::execs));
  }
  text += fmt::format("{}:{}\n", kCycle, subjects_that(&Kind::lives));
  text += fmt::format("{}:{}\n", kIdle, subjects_that(&Kind::idles));
  return text;
}

Results run_sandbox_page(const PageOptions& options) {
  // Before parts of it are hidden from the peers.
  std::fputs(describe_machine().c_str(), stdout);
  return SandboxPage(options).run();
}

}  // namespace hearth::bench
