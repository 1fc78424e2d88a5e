// A page: cases that are measured together and read together.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/goals.h"
#include "bench/report.h"

namespace hearth::bench {

struct PageOptions {
  unsigned rounds = 0;
  std::string only;       // one case, with its variants; empty: all
  bool long_run = false;  // go on for ten minutes with whole lives of sandboxes
  unsigned many = 0;      // so many sandboxes alive at once; 0: not
};

struct Results {
  std::vector<Row> rows;
  std::vector<Skip> skips;

  void skip(std::string_view bench_case, std::string_view subject, const std::string& reason) {
    skips.push_back(
        {.bench_case = std::string(bench_case), .subject = std::string(subject), .reason = reason});
  }
};

struct Page {
  std::string_view name;
  std::string_view title;
  // "case: subject subject ...", one a line.
  std::string (*list)();
  // Says what it does on stdout and stderr, and leaves nothing behind. Throws Error, Interrupted.
  Results (*run)(const PageOptions& options);
  std::span<const Goal> (*goals)();
};

// The first one is the default.
std::span<const Page> all_pages();

// What a sandbox costs: to make, to use, to keep.
std::string list_runtime_page();
Results run_runtime_page(const PageOptions& options);

// What it costs to ask a sandbox for something, over each of its surfaces.
std::string list_guest_page();
Results run_guest_page(const PageOptions& options);

// What it costs to keep an object in the embedded Kubernetes API, beside etcd.
std::string list_kube_page();
Results run_kube_page(const PageOptions& options);

// What the E2B API and the gateway cost, beside a server that does nothing, crun and nginx.
std::string list_e2b_page();
Results run_e2b_page(const PageOptions& options);

// How long it takes from a claim to its warm sandbox, beside one write to the API.
std::string list_claims_page();
Results run_claims_page(const PageOptions& options);

}  // namespace hearth::bench
