// Making a sandbox: from a pool with one write and one call into the guest, or cold.
//
//   pool ── take ── commit (the one write) ──┐
//                                            ├── outfit ── the cache shows it ── answer
//   blueprint ── create ── wait for Ready ───┘
//
// From its first write on it has an end: whatever dies in between, it goes by itself. What fails
// here is deleted at once. The time of one that starts cold begins when it is usable; until then
// its end is so late that starting uses up none of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "e2b/core.h"
#include "e2b/create_request.h"

namespace hearth::e2b {

// Everything that one new sandbox is made with.
struct Birth {
  std::string ns;
  std::string template_id;         // as it is shown
  std::function<Json()> spec;      // of a cold one: podTemplate and the rest of a blueprint
  std::optional<model::Key> pool;  // where a warm one may be taken from
  std::string tenant;              // whom the allocator is fair to
  // A merge patch of a Sandbox: labels and annotations, but for its times. See marks_of.
  Json marks;
  std::int64_t timeout_seconds = 0;
  Texts environment;
};

// What the request makes of a Sandbox besides its pod: a merge patch.
Json marks_of(const CreateRequest& request, const Json& sandbox_template);

// Puts in what the template says about access. Its word on who gets in is the least that is asked
// for; of the rest, what the request says goes before it.
void put_access_rules(const Json& sandbox_template, Json& marks);

// The pool of that template in this namespace whose members bear ids; nothing for none.
std::optional<model::Key> find_pool(const Core& core, std::string_view ns,
                                    const Json& sandbox_template);
// Before the caches start.
void index_pools(client::WatchCache& pools);

// As the cache shows it, usable. The place is told which one it is for. Blocks. Throws Error,
// Refusal.
Object give_birth(Core& core, const Birth& birth, Census::Place& place);

// The sandbox, if it is still this one. Does not throw: for clearing up.
void discard(Core& core, const Json& sandbox);

}  // namespace hearth::e2b
