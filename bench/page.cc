#include "bench/page.h"

#include <array>

namespace hearth::bench {

std::span<const Page> all_pages() {
  static constexpr std::array<Page, 1> kPages = {{
      {.name = "runtime",
       .title = "what a sandbox costs: to make, to use, to keep",
       .list = &list_runtime_page,
       .run = &run_runtime_page,
       .goals = &runtime_goals},
  }};
  return kPages;
}

}  // namespace hearth::bench
