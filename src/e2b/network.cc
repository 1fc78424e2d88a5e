// PUT /sandboxes/{id}/network: whom a sandbox may talk to from now on.
#include "base/on_failure.h"
#include "e2b/answers.h"
#include "e2b/network_wish.h"
#include "e2b/outfitting.h"
#include "e2b/routes.h"
#include "e2b/state.h"
#include "e2b/words.h"
#include "model/front_door.h"
#include "net/workers.h"
#include "pool/reach.h"

namespace hearth::e2b {
namespace {

// The pod of what runs; its cache may be a moment behind.
constexpr Duration kPodPatience = std::chrono::seconds(5);

Json annotated(JsonObject annotations) {
  return JsonObject{{"metadata", JsonObject{{"annotations", std::move(annotations)}}}};
}

// Those that a change of egress touches, as they are: to take it back.
JsonObject egress_annotations_of(const Json& sandbox) {
  JsonObject there;
  for (const std::string_view key : {model::kEgressAnnotation, kInternetAnnotation}) {
    const std::string_view value = model::annotation_of(sandbox, key);
    there[key] = value.empty() ? Json(nullptr) : Json(value);
  }
  return there;
}

http::Response update(Core& core, const Call& call) {
  const EgressWish wish = parse_egress(call.body());
  const auto turn = core.turns.take(model::key_of(*call.sandbox(core)));
  const Object sandbox = call.sandbox(core);
  if (state_of(*sandbox) != State::running)
    refuse(409, "sandbox '{}' does not run; resume it first", model::name_of(*sandbox));
  if (core.parts.reach == nullptr)
    refuse_unoffered("changing a sandbox's network", "this engine cannot reach into its sandboxes");
  const Object pod = wait_for_pod(core, *sandbox, kPodPatience);
  // First on the object: what dies in between is put right when the pod gets its outfit again.
  OnFailure undo([&] { core.patch_sandbox(*sandbox, annotated(egress_annotations_of(*sandbox))); });
  core.patch_sandbox(*sandbox, annotated(egress_annotations(wish)));
  ask_below(model::name_of(*sandbox), [&] {
    const net::Workers::Aside aside;
    core.parts.reach->set_egress(*pod, wish.egress());
  });
  undo.release();
  return answer_nothing();
}

}  // namespace

void add_network_routes(Routes& routes, Core& core) {
  routes.add("PUT", "/sandboxes/{id}/network",
             [&core](const Call& call) { return update(core, call); });
}

}  // namespace hearth::e2b
