#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "bench/claim_client.h"
#include "bench/claim_engines.h"
#include "bench/entry.h"
#include "bench/interleave.h"
#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/page.h"
#include "bench/statistics.h"

namespace hearth::bench {
namespace {

constexpr std::array<const char*, 4> kCases = {"claim", "claim_50", "claim_burst_500",
                                               "claim_sustained"};
constexpr const char* kSubjects =
    "hearth hearth_simulated api_write api_write_synced api_write_simulated";

constexpr unsigned kInARow = 10;

// How much of everything. A run that only shows that all of it works has less.
struct Extent {
  unsigned some = 50;    // at once
  unsigned burst = 500;  // at once
  unsigned bursts = 5;
  unsigned workers = 32;      // that go on claiming
  unsigned sustained = 1000;  // warm ones that they claim from
  Duration time = std::chrono::seconds(10);
};
Extent extent_for(unsigned rounds) {
  constexpr unsigned kThorough = 40;
  if (rounds >= kThorough) return {};
  return {.some = 5,
          .burst = 10,
          .bursts = 1,
          .workers = 4,
          .sustained = 10,
          .time = std::chrono::milliseconds(300)};
}

// An engine, and everybody who talks to it.
class Team {
 public:
  Team(std::string suffix, std::unique_ptr<ClaimEngine> engine)
      : suffix_(std::move(suffix)),
        engine_(std::move(engine)),
        watch_(engine_->address()),
        pool_(engine_->address(), engine_->image()) {}

  std::string subject() const { return "hearth" + suffix_; }
  std::string writer() const { return "api_write" + suffix_; }
  bool is_real() const { return suffix_.empty(); }
  BenchPool& pool() { return pool_; }

  // The first so many connections; they stay for the next who want some.
  std::deque<Claimer>& claimers(unsigned count) {
    while (claimers_.size() < count) claimers_.emplace_back(engine_->address(), watch_);
    return claimers_;
  }

  void keep(Claimer::Claimed claimed) {
    const std::lock_guard lock(mutex_);
    names_.push_back(std::move(claimed.name));
    if (!claimed.ready.is_warm) ++cold_;
  }
  // What was claimed goes, and comes again.
  void recover() {
    const std::lock_guard lock(mutex_);
    for (const std::string& name : names_) claimers(1).front().unclaim(name);
    names_.clear();
    watch_.wait_empty();
    pool_.wait_full();
    wait_for_rest();
  }
  unsigned cold() const { return cold_; }

 private:
  const std::string suffix_;
  std::unique_ptr<ClaimEngine> engine_;
  ClaimWatch watch_;
  BenchPool pool_;
  std::deque<Claimer> claimers_;
  std::mutex mutex_;                // guards what follows
  std::vector<std::string> names_;  // claims that are there
  unsigned cold_ = 0;               // claims for which there was nothing warm
};

class ClaimsPage {
 public:
  explicit ClaimsPage(const PageOptions& options)
      : options_(options), extent_(extent_for(options.rounds)) {
    join("", &start_hearth_up);
    join("_simulated", &start_simulation);
  }

  Results run();

 private:
  void join(const char* suffix, std::unique_ptr<ClaimEngine> (*start)());
  void attempt(const char* name, const std::function<void(Team& team)>& what);
  void note(const char* name, const std::string& subject, const std::vector<double>& times,
            std::optional<double> per_s = {});

  void measure_single(Team& team);
  void count_writes(Team& team);
  void measure_at_once(Team& team, const char* name, unsigned count);
  double measure_claims(Team& team, unsigned count, std::vector<double>& times);
  double measure_writes(Team& team, unsigned count, std::vector<double>& times);
  void measure_sustained(Team& team);

  const PageOptions options_;
  const Extent extent_;
  std::deque<Team> teams_;
  Results results_;
};

void ClaimsPage::join(const char* suffix, std::unique_ptr<ClaimEngine> (*start)()) {
  try {
    teams_.emplace_back(suffix, start());
  } catch (const Error& error) {
    results_.skip("", std::string("hearth") + suffix, error.what());
  }
}

// What one case lacks must not take the others with it.
void ClaimsPage::attempt(const char* name, const std::function<void(Team& team)>& what) {
  if (!options_.only.empty() && options_.only != name) return;
  for (Team& team : teams_) {
    std::fputs(fmt::format("{} of {} ...\n", name, team.subject()).c_str(), stderr);
    try {
      what(team);
    } catch (const Error& error) {
      results_.skip(name, team.subject(), error.what());
    }
  }
}

void ClaimsPage::note(const char* name, const std::string& subject,
                      const std::vector<double>& times, std::optional<double> per_s) {
  const Summary summary = summarize(times);
  results_.rows.push_back({.bench_case = name,
                           .subject = subject,
                           .p50_us = summary.p50,
                           .p99_us = summary.p99,
                           .per_s = per_s,
                           .n = summary.count});
}

void ClaimsPage::measure_single(Team& team) {
  team.pool().set_size(2 * kInARow);
  Claimer& claimer = team.claimers(1).front();
  std::vector<Contender> contenders = {
      {.subject = team.subject(),
       .take_turn =
           [&] {
             Claimer::Claimed claimed = claimer.claim();
             const double us = claimed.us;
             team.keep(std::move(claimed));
             return us;
           },
       .recover = [&] { team.recover(); }},
      {.subject = team.writer(), .take_turn = [&] { return claimer.write(); }}};
  if (team.is_real())
    contenders.push_back(
        {.subject = "api_write_synced", .take_turn = [&] { return claimer.write_synced(); }});
  const unsigned in_a_row = std::min(kInARow, options_.rounds);
  interleave(contenders,
             {.warm_up = 1, .rounds = options_.rounds / in_a_row * 2, .in_a_row = in_a_row});
  for (const Contender& contender : contenders) {
    if (!contender.failure.empty()) {
      results_.skip("claim", contender.subject, contender.failure);
    } else {
      note("claim", contender.subject, contender.turns);
    }
  }
}

// The revision is the whole store's, and the pool is refilled meanwhile: the least of all claims is
// what one takes itself.
void ClaimsPage::count_writes(Team& team) {
  Claimer& claimer = team.claimers(1).front();
  std::vector<double> writes;
  for (unsigned i = 0; i < kInARow; ++i) {
    const std::uint64_t before = claimer.revision();
    Claimer::Claimed claimed = claimer.claim();
    writes.push_back(static_cast<double>(claimed.ready.version - before));
    team.keep(std::move(claimed));
  }
  team.recover();
  results_.rows.push_back({.bench_case = "claim_writes",
                           .subject = team.subject(),
                           .writes = std::ranges::min(writes),
                           .n = writes.size()});
}

// Both return a second's worth of them, if they went on like that.
double ClaimsPage::measure_claims(Team& team, unsigned count, std::vector<double>& times) {
  std::deque<Claimer>& claimers = team.claimers(count);
  const Moment begin = now();
  for (unsigned i = 0; i < count; ++i) claimers[i].send_claim();
  read_answers(claimers, count, [&](unsigned index) { claimers[index].answered(); });
  for (unsigned i = 0; i < count; ++i) {
    Claimer::Claimed claimed = claimers[i].await_claim();
    times.push_back(claimed.us);
    team.keep(std::move(claimed));
  }
  return count / us_between(begin, now()) * 1e6;
}

double ClaimsPage::measure_writes(Team& team, unsigned count, std::vector<double>& times) {
  std::deque<Claimer>& claimers = team.claimers(count);
  const Moment begin = now();
  for (unsigned i = 0; i < count; ++i) claimers[i].send_write();
  read_answers(claimers, count,
               [&](unsigned index) { times.push_back(claimers[index].answered()); });
  return count / us_between(begin, now()) * 1e6;
}

void ClaimsPage::measure_at_once(Team& team, const char* name, unsigned count) {
  team.pool().set_size(count);
  std::vector<double> claim_times;
  std::vector<double> claim_rates;
  std::vector<double> write_times;
  std::vector<double> write_rates;
  for (unsigned burst = 0; burst < extent_.bursts; ++burst) {
    claim_rates.push_back(measure_claims(team, count, claim_times));
    team.recover();
    write_rates.push_back(measure_writes(team, count, write_times));
  }
  note(name, team.subject(), claim_times, summarize(claim_rates).p50);
  note(name, team.writer(), write_times, summarize(write_rates).p50);
}

void ClaimsPage::measure_sustained(Team& team) {
  team.pool().set_size(extent_.sustained);
  std::deque<Claimer>& claimers = team.claimers(extent_.workers);
  std::vector<std::vector<double>> times(extent_.workers);
  std::atomic<unsigned> cold = 0;
  const Moment begin = now();
  all_at_once(extent_.workers, [&](unsigned index) {
    while (now() - begin < extent_.time && !was_interrupted()) {
      const Claimer::Claimed claimed = claimers[index].claim();
      times[index].push_back(claimed.us);
      if (!claimed.ready.is_warm) ++cold;
      claimers[index].unclaim(claimed.name);
    }
  });
  const double taken = us_between(begin, now());
  std::vector<double> all;
  for (const std::vector<double>& own : times) all.insert(all.end(), own.begin(), own.end());
  note("claim_sustained", team.subject(), all, static_cast<double>(all.size()) / taken * 1e6);
  std::fputs(fmt::format("claim_sustained: {} of {} claims of {} found the pool empty\n",
                         cold.load(), all.size(), team.subject())
                 .c_str(),
             stdout);
  team.recover();
}

Results ClaimsPage::run() {
  std::fputs(
      "\n"
      "From before a SandboxClaim is sent until a watch sees it Ready, over TLS, from a warm "
      "pool.\n"
      "hearth is a 'hearth up' with real sandboxes; hearth_simulated its API server and "
      "controllers\n"
      "in this process, with a node that only says that pods run. api_write is one plain write on\n"
      "the same connections, of a kind that is kept as claims are; api_write_synced one that is "
      "on\n"
      "the disk before it is answered. claim_50, claim_burst_500: so many at once, each on a\n"
      "connection of its own, from a pool of as many. claim_sustained: 32 who claim and let go "
      "for\n"
      "ten seconds, from a pool of 1,000 that is refilled meanwhile. claim_writes: how far the\n"
      "store's revision goes from before a claim until it is Ready, at least. All but\n"
      "claim_sustained begin when the machine is at rest.\n\n",
      stdout);
  attempt("claim", [&](Team& team) { measure_single(team); });
  attempt("claim", [&](Team& team) { count_writes(team); });
  attempt("claim_50", [&](Team& team) { measure_at_once(team, "claim_50", extent_.some); });
  attempt("claim_burst_500",
          [&](Team& team) { measure_at_once(team, "claim_burst_500", extent_.burst); });
  attempt("claim_sustained", [&](Team& team) { measure_sustained(team); });
  return std::move(results_);
}

}  // namespace

std::string list_claims_page() {
  std::string text;
  for (const char* name : kCases) text += fmt::format("{}: {}\n", name, kSubjects);
  return text;
}

Results run_claims_page(const PageOptions& options) {
  if (!options.only.empty() && std::ranges::find(kCases, options.only) == kCases.end())
    fail(Code::invalid, "there is no case '{}'; see --list", options.only);
  std::fputs(describe_machine().c_str(), stdout);
  return ClaimsPage(options).run();
}

}  // namespace hearth::bench
