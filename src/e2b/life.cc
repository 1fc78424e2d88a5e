// DELETE /sandboxes/{id}, POST /sandboxes/{id}/timeout and /refreshes.
#include "e2b/life.h"

#include <algorithm>
#include <limits>

#include "client/kinds.h"
#include "e2b/answers.h"
#include "e2b/routes.h"
#include "e2b/state.h"

namespace hearth::e2b {
namespace {

constexpr std::int64_t kMostRefresh = 3600;

// What has a time: one that runs. A paused one has none, and is not found for it.
Object get_running(Core& core, const Call& call) {
  Object sandbox = call.sandbox(core);
  const State state = state_of(*sandbox);
  if (state == State::paused) refuse_unknown_sandbox(call.request.parameter("id"));
  if (state != State::running)
    refuse(409, "sandbox '{}' is being paused or resumed; try again", model::name_of(*sandbox));
  return sandbox;
}

http::Response set_timeout(Core& core, const Call& call) {
  const auto seconds = call.body().number("timeout", 0, std::numeric_limits<std::int32_t>::max());
  if (!seconds) refuse(400, "the field 'timeout' is required");
  check_timeout(call.holder, *seconds);
  const auto turn = core.turns.take(call.key());
  const Object sandbox = get_running(core, call);
  if (*seconds == 0 && !pauses_at_end(*sandbox))
    kill(core, *sandbox);
  else
    set_end(core, *sandbox, core.now() + std::chrono::seconds(*seconds));
  return answer_nothing();
}

http::Response refresh(Core& core, const Call& call) {
  const auto seconds = call.body().number("duration", 0, kMostRefresh);
  const auto turn = core.turns.take(call.key());
  const Object sandbox = get_running(core, call);
  const std::int64_t duration =
      std::min(seconds.value_or(timeout_of(*sandbox)), call.holder.limits.lifetime_seconds);
  extend(core, *sandbox, duration);
  return answer_nothing();
}

}  // namespace

void kill(Core& core, const Json& sandbox, std::string_view version) {
  const model::Key key = model::key_of(sandbox);
  const std::string uid(model::uid_of(sandbox));
  try {
    core.parts.client.remove(client::kSandboxes, key.ns, key.name,
                             {.propagation = {},
                              .uid = uid,
                              .resource_version = std::string(version),
                              .grace_seconds = {}});
  } catch (const model::StatusError& error) {
    // Somebody was faster, or it is another one by now: 404 and 409.
    const bool is_changed = error.status().code == 409;
    if (error.status().code == 404 || (is_changed && version.empty()))
      refuse_unknown_sandbox(key.name);
    throw;
  }
  // Whoever asks next is told that it is gone.
  core.tell_deleted(sandbox);
  core.sandbox_waits.until(
      key,
      [&](const Json* object) {
        return object == nullptr || model::uid_of(*object) != uid || model::is_deleting(*object);
      },
      core.options.settle_patience);
}

Json set_end(Core& core, const Json& sandbox, Time end) {
  Json patch = JsonObject();
  put_end(patch, end, !pauses_at_end(sandbox));
  return core.patch_sandbox(sandbox, std::move(patch));
}

void extend(Core& core, const Json& sandbox, std::int64_t seconds) {
  const Time end = core.now() + std::chrono::seconds(seconds);
  if (end_at(sandbox).value_or(Time()) < end) set_end(core, sandbox, end);
}

void add_life_routes(Routes& routes, Core& core) {
  routes.add("DELETE", "/sandboxes/{id}", [&core](const Call& call) {
    kill(core, *call.sandbox(core));
    return answer_nothing();
  });
  routes.add("POST", "/sandboxes/{id}/timeout",
             [&core](const Call& call) { return set_timeout(core, call); });
  routes.add("POST", "/sandboxes/{id}/refreshes",
             [&core](const Call& call) { return refresh(core, call); });
}

}  // namespace hearth::e2b
