// POST /sandboxes/{id}/pause, /resume and /connect, and /v2/sandboxes/{id}/connect.
#include <limits>

#include "e2b/answers.h"
#include "e2b/create_request.h"
#include "e2b/life.h"
#include "e2b/pause.h"
#include "e2b/routes.h"
#include "e2b/state.h"
#include "e2b/view.h"
#include "model/front_door.h"

namespace hearth::e2b {
namespace {

constexpr std::int64_t kMostSeconds = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kUsualResume = 15;
constexpr std::int64_t kUsualConnect = 300;

Keeps keeps_of(const Body& body) {
  return body.flag("memory").value_or(true) ? Keeps::memory : Keeps::files;
}

// 409 for what is on its way from one to the other.
State settled_state(const Json& sandbox) {
  const State state = state_of(sandbox);
  if (state != State::running && state != State::paused)
    refuse(409, "sandbox '{}' is being paused or resumed; try again", model::name_of(sandbox));
  return state;
}

http::Response pause_route(Core& core, const Call& call) {
  const Keeps keeps = keeps_of(call.body());
  const auto turn = core.turns.take(call.key());
  const Object sandbox = call.sandbox(core);
  if (settled_state(*sandbox) == State::paused)
    refuse(409, "sandbox '{}' is paused already", model::name_of(*sandbox));
  pause(core, *sandbox, keeps);
  return answer_nothing();
}

Json resume_for(Core& core, const Call& call, const Json& sandbox, std::int64_t seconds,
                Keeps keeps) {
  const Census::Place place = core.census.admit(call.holder, model::name_of(sandbox));
  return resume(core, sandbox, seconds, keeps);
}

http::Response resume_route(Core& core, const Call& call) {
  const Body body = call.body();
  const std::int64_t seconds = body.number("timeout", 1, kMostSeconds).value_or(kUsualResume);
  check_timeout(call.holder, seconds);
  const auto turn = core.turns.take(call.key());
  const Object sandbox = call.sandbox(core);
  if (settled_state(*sandbox) == State::running)
    refuse(409, "sandbox '{}' is running already", model::name_of(*sandbox));
  const Json running = resume_for(core, call, *sandbox, seconds, keeps_of(body));
  return answer_json(201, sandbox_answer(core, running));
}

http::Response connect(Core& core, const Call& call, Generation generation) {
  const Body body = call.body();
  const auto asked = body.number("timeout", 0, kMostSeconds);
  if (!asked && generation == Generation::v1) refuse(400, "the field 'timeout' is required");
  const std::int64_t seconds = asked.value_or(kUsualConnect);
  check_timeout(call.holder, seconds);
  const Keeps keeps = keeps_of(body);
  const auto turn = core.turns.take(call.key());
  const Object sandbox = call.sandbox(core);
  if (settled_state(*sandbox) == State::running) {
    extend(core, *sandbox, seconds);
    return answer_json(200, sandbox_answer(core, *sandbox));
  }
  if (seconds == 0) refuse(400, "the field 'timeout' is 0: it would end as soon as it is resumed");
  const Json running = resume_for(core, call, *sandbox, seconds, keeps);
  return answer_json(201, sandbox_answer(core, running));
}

}  // namespace

void add_pause_routes(Routes& routes, Core& core) {
  routes.add("POST", "/sandboxes/{id}/pause",
             [&core](const Call& call) { return pause_route(core, call); });
  routes.add("POST", "/sandboxes/{id}/resume",
             [&core](const Call& call) { return resume_route(core, call); });
  routes.add("POST", "/sandboxes/{id}/connect",
             [&core](const Call& call) { return connect(core, call, Generation::v1); });
  routes.add("POST", "/v2/sandboxes/{id}/connect",
             [&core](const Call& call) { return connect(core, call, Generation::v2); });
}

}  // namespace hearth::e2b
