#include "bench/page.h"

#include <array>

namespace hearth::bench {

std::span<const Page> all_pages() {
  static constexpr std::array<Page, 5> kPages = {{
      {.name = "runtime",
       .title = "what a sandbox costs: to make, to use, to keep",
       .list = &list_runtime_page,
       .run = &run_runtime_page,
       .goals = &runtime_goals},
      {.name = "guest",
       .title = "what it costs to ask a sandbox for something, over each of its surfaces",
       .list = &list_guest_page,
       .run = &run_guest_page,
       .goals = &guest_goals},
      {.name = "kube",
       .title = "what it costs to keep an object in the embedded Kubernetes API",
       .list = &list_kube_page,
       .run = &run_kube_page,
       .goals = &kube_goals},
      {.name = "claims",
       .title = "how long it takes from a claim to its warm sandbox",
       .list = &list_claims_page,
       .run = &run_claims_page,
       .goals = &claims_goals},
      {.name = "e2b",
       .title = "what it costs to create a sandbox through the E2B API, and to reach it",
       .list = &list_e2b_page,
       .run = &run_e2b_page,
       .goals = &e2b_goals},
  }};
  return kPages;
}

}  // namespace hearth::bench
