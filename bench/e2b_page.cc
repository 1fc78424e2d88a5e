#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "bench/e2b_proxy.h"
#include "bench/e2b_subjects.h"
#include "bench/goals.h"
#include "bench/interleave.h"
#include "bench/machine.h"
#include "bench/page.h"
#include "bench/statistics.h"
#include "bench/workshop.h"

namespace hearth::bench {
namespace {

struct CaseNames {
  const char* name;
  const char* subjects;
};
constexpr std::array<CaseNames, 7> kCases = {
    {{.name = "create_burst", .subjects = "hearth echo"},
     {.name = "create_gap", .subjects = "hearth echo"},
     {.name = "create_first_exec", .subjects = "hearth crun floor js_sdk py_sdk"},
     {.name = "create_first_exec_gap", .subjects = "hearth crun floor js_sdk py_sdk"},
     {.name = "create_exec_burst", .subjects = "hearth crun js_sdk py_sdk"},
     {.name = "proxy", .subjects = "hearth nginx"},
     {.name = "proxy_per_core", .subjects = "hearth nginx"}}};

constexpr unsigned kInARow = 10;
constexpr Duration kGap = std::chrono::milliseconds(20);

// How much of everything. A run that only shows that all of it works has less.
struct Extent {
  unsigned burst = 100;  // at once
  // A burst is over in the time of two ticks of the kernel's: where it begins between them counts,
  // and of a few the middle one is nobody's. With commands it takes longer, and they are dear.
  unsigned bursts = 15;
  unsigned exec_bursts = 5;
};
Extent extent_for(unsigned rounds) {
  constexpr unsigned kThorough = 40;
  return rounds >= kThorough ? Extent{} : Extent{.burst = 5, .bursts = 1, .exec_bursts = 1};
}

struct Entrant {
  std::string subject;
  std::unique_ptr<Starts> starts;
  std::vector<double> times = {};  // of each start
};

class E2bPage {
 public:
  explicit E2bPage(const PageOptions& options)
      : options_(options), extent_(extent_for(options.rounds)) {}

  Results run();

 private:
  // A case that is asked for brings its variant with gaps.
  bool wants(std::string_view name) const {
    return options_.only.empty() || name == options_.only ||
           name == options_.only + std::string(kGapSuffix);
  }
  // Those of the creates, or those that go on to a command.
  void measure_creates();
  void measure_first_execs();
  void enter(std::vector<Entrant>& entrants, const char* subject,
             const std::function<std::unique_ptr<Starts>()>& make);
  void measure(const char* name, std::vector<Entrant>& entrants, unsigned at_once,
               const Schedule& schedule);
  static Schedule bursts(unsigned count) { return {.warm_up = 1, .rounds = count}; }
  Schedule one_by_one(Duration gap) const {
    const unsigned in_a_row = std::min(kInARow, options_.rounds);
    return {.warm_up = 1, .rounds = options_.rounds / in_a_row, .in_a_row = in_a_row, .gap = gap};
  }

  PageOptions options_;
  Extent extent_;
  // In this order: the engine has to see all of the machine, crun must not.
  std::unique_ptr<E2bEngine> engine_;
  std::unique_ptr<Workshop> workshop_;
  Results results_;
};

void E2bPage::enter(std::vector<Entrant>& entrants, const char* subject,
                    const std::function<std::unique_ptr<Starts>()>& make) {
  try {
    entrants.push_back({.subject = subject, .starts = make()});
  } catch (const Error& error) {
    results_.skip("", subject, error.what());
  }
}

void E2bPage::measure(const char* name, std::vector<Entrant>& entrants, unsigned at_once,
                      const Schedule& schedule) {
  if (!wants(name)) return;
  std::fputs(fmt::format("{} ...\n", name).c_str(), stderr);
  std::vector<Contender> contenders;
  for (Entrant& each : entrants) {
    each.times.clear();
    contenders.push_back({.subject = each.subject,
                          .take_turn =
                              [&each, at_once] {
                                const Moment begin = now();
                                std::vector<double> times = each.starts->start(at_once);
                                const double taken = us_between(begin, now());
                                each.times.insert(each.times.end(), times.begin(), times.end());
                                return at_once / taken * 1e6;
                              },
                          .recover = [&each] { each.starts->clear(); }});
  }
  interleave(contenders, schedule);
  // Rounds that do not count are the first ones of each.
  const std::size_t warm_up = std::size_t{at_once} * schedule.warm_up * schedule.in_a_row;
  for (std::size_t i = 0; i < entrants.size(); ++i) {
    if (!contenders[i].failure.empty()) {
      results_.skip(name, entrants[i].subject, contenders[i].failure);
      continue;
    }
    std::vector<double>& times = entrants[i].times;
    times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(warm_up));
    const Summary summary = summarize(times);
    Row row{.bench_case = name,
            .subject = entrants[i].subject,
            .p50_us = summary.p50,
            .p99_us = summary.p99,
            .n = summary.count};
    if (at_once > 1) row.per_s = summarize(contenders[i].turns).p50;
    results_.rows.push_back(row);
  }
}

void E2bPage::measure_creates() {
  std::vector<Entrant> entrants;
  auto ours = std::make_unique<RawCreates>(*engine_, extent_.burst);
  ours->start(1);
  ours->clear();
  const std::size_t bytes = ours->answer_bytes();
  entrants.push_back({.subject = "hearth", .starts = std::move(ours)});
  enter(entrants, "echo",
        [&] { return std::make_unique<EchoStarts>(engine_->key(), bytes, extent_.burst); });
  measure("create_burst", entrants, extent_.burst, bursts(extent_.bursts));
  measure("create_gap", entrants, 1, one_by_one(kGap));
}

void E2bPage::measure_first_execs() {
  std::vector<Entrant> entrants;
  auto ours = std::make_unique<RawFirstExecs>(*engine_, extent_.burst);
  ours->start(1);
  ours->clear();
  const std::size_t bytes = ours->answer_bytes();
  entrants.push_back({.subject = "hearth", .starts = std::move(ours)});
  enter(entrants, "crun", [&] {
    workshop_ = std::make_unique<Workshop>(Workshop::Engines::none);
    return std::make_unique<CommandStarts>(make_crun(*workshop_));
  });
  enter(entrants, "js_sdk", [&] { return make_js_sdk(*engine_); });
  enter(entrants, "py_sdk", [&] { return make_py_sdk(*engine_); });
  enter(entrants, "floor", [&] { return std::make_unique<FloorStarts>(engine_->key(), bytes); });
  measure("create_first_exec", entrants, 1, one_by_one({}));
  measure("create_first_exec_gap", entrants, 1, one_by_one(kGap));
  std::erase_if(entrants, [](const Entrant& each) { return each.subject == "floor"; });
  measure("create_exec_burst", entrants, extent_.burst, bursts(extent_.exec_bursts));
}

Results E2bPage::run() {
  std::fputs(
      "\n"
      "hearth is a 'hearth up' with real sandboxes, asked over HTTP on kept connections; its pool\n"
      "has as many warm ones as a burst takes, and is filled again in nobody's time. echo is a\n"
      "server of one epoll that answers as many bytes as a create has, asked by the same client.\n"
      "  create_burst             POST /sandboxes until its answer is here, 100 at once\n"
      "  create_gap               the same one by one, each after 20 ms of nothing\n"
      "  create_first_exec        create, then the first byte that a command writes; crun: 'run'\n"
      "                           until that byte; js_sdk, py_sdk: Sandbox.create and\n"
      "                           commands.run of E2B's own packages; one by one. floor is a\n"
      "                           server that does nothing for the two requests but to write\n"
      "                           4 KiB to a file and to start the program, without any walls\n"
      "  create_first_exec_gap    the same, each after 20 ms of nothing\n"
      "  create_exec_burst        the same without gaps, 100 at once\n"
      "  proxy                    GET of 1 KiB through our gateway and through nginx, one thread\n"
      "                           each, to the same server, 32 clients at once\n"
      "  proxy_per_core           the same requests, for each second of processor time that the\n"
      "                           proxy itself has taken\n\n",
      stdout);
  const bool creates = wants("create_burst") || wants("create_gap");
  const bool execs =
      wants("create_first_exec") || wants("create_first_exec_gap") || wants("create_exec_burst");
  if (creates || execs) {
    try {
      engine_ = std::make_unique<E2bEngine>();
      engine_->set_pool(extent_.burst);
      if (creates) measure_creates();
      if (execs) measure_first_execs();
    } catch (const Error& error) {
      results_.skip("", "hearth", error.what());
    }
    workshop_.reset();
    engine_.reset();
  }
  if (wants("proxy") || wants("proxy_per_core")) measure_proxies(options_, results_);
  return std::move(results_);
}

}  // namespace

std::string list_e2b_page() {
  std::string text;
  for (const CaseNames& each : kCases) text += fmt::format("{}: {}\n", each.name, each.subjects);
  return text;
}

Results run_e2b_page(const PageOptions& options) {
  if (!options.only.empty() && std::ranges::find(kCases, options.only, [](const CaseNames& each) {
                                 return std::string(each.name);
                               }) == kCases.end()) {
    fail(Code::invalid, "there is no case '{}'; see --list", options.only);
  }
  std::fputs(describe_machine().c_str(), stdout);
  return E2bPage(options).run();
}

}  // namespace hearth::bench
