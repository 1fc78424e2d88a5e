#include "bench/page.h"

#include <array>

namespace hearth::bench {

std::span<const Page> all_pages() {
  static constexpr std::array<Page, 1> kPages = {{
      {.name = "sandbox",
       .title = "what a sandbox costs: to make, to use, to keep",
       .list = &list_sandbox_page,
       .run = &run_sandbox_page},
  }};
  return kPages;
}

}  // namespace hearth::bench
