// A page: cases that are measured together and read together.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/report.h"

namespace hearth::bench {

struct PageOptions {
  unsigned rounds = 0;
};

struct Results {
  std::vector<Row> rows;
  std::vector<Skip> skips;
};

struct Page {
  std::string_view name;
  std::string_view title;
  // "case: subject subject ...", one a line.
  std::string (*list)();
  // Says what it does on stdout and stderr, and leaves nothing behind. Throws Error, Interrupted.
  Results (*run)(const PageOptions& options);
};

// The first one is the default.
std::span<const Page> all_pages();

// What a sandbox costs: to make, to use, to keep.
std::string list_sandbox_page();
Results run_sandbox_page(const PageOptions& options);

}  // namespace hearth::bench
