// POST /sandboxes and POST /v2/sandboxes.
#include <algorithm>
#include <memory>

#include "controllers/blueprint.h"
#include "e2b/answers.h"
#include "e2b/birth.h"
#include "e2b/idempotency.h"
#include "e2b/kept_images.h"
#include "e2b/routes.h"
#include "e2b/team_pools.h"
#include "e2b/template_reference.h"
#include "e2b/view.h"

namespace hearth::e2b {
namespace {

void check_size(const Core& core, const tenants::KeyHolder& holder, const Json& sandbox_template) {
  const Size size = size_of(core, sandbox_template);
  const std::int64_t millis = size.cpu_millis > 0 ? size.cpu_millis : size.cpu_count * 1000;
  if (millis > holder.limits.cpu_millis)
    refuse(400, "sandboxes of this template have {} thousandths of a processor; your limit is {}",
           millis, holder.limits.cpu_millis);
  if (size.memory_mib > holder.limits.memory_mib)
    refuse(400, "sandboxes of this template have {} MiB of memory; your limit is {}",
           size.memory_mib, holder.limits.memory_mib);
}

Birth birth_of(const Core& core, const tenants::KeyHolder& holder, const CreateRequest& request,
               const Object& sandbox_template) {
  Birth birth{
      .ns = holder.ns,
      .template_id = std::string(template_id(*sandbox_template)),
      .spec = [sandbox_template] { return controllers::blueprint_of(*sandbox_template).spec; },
      .pool = {},
      .tenant = holder.team,
      .marks = marks_of(request, *sandbox_template),
      .timeout_seconds = request.timeout_seconds,
      .environment = request.environment};
  put_access_rules(*sandbox_template, birth.marks);
  birth.pool = find_pool(core, holder.ns, *sandbox_template);
  return birth;
}

http::Response create_new(Core& core, KeptImages& images, TeamPools& team_pools, const Call& call,
                          Generation generation, const std::optional<IdempotencyKey>& key) {
  const CreateRequest request = parse_create(call.body(), generation);
  check_timeout(call.holder, request.timeout_seconds);
  if (core.parts.reach == nullptr && !request.network.egress.is_open())
    refuse_unoffered("limiting whom a sandbox may talk to", "give its template a NetworkPolicy");
  if (core.parts.reach == nullptr && !request.pauses_memory)
    refuse_unoffered("pausing without memory", "leave out 'autoPauseMemory'");
  const Object seen = get_template(core, call.holder, request.template_reference);
  // A snapshot that is deleted before its Sandbox is known would take its image along: nothing
  // could start from it, and whoever waits would wait in vain.
  const KeptImages::Pin image = images.pin(*seen);
  const Object sandbox_template = get_template(core, call.holder, request.template_reference);
  check_size(core, call.holder, *sandbox_template);
  core.rates.admit(call.holder);
  const std::shared_ptr<Census::Place> place(new Census::Place(core.census.admit(call.holder)));
  Birth birth = birth_of(core, call.holder, request, sandbox_template);
  if (key) put_idempotency_key(*key, birth.marks);
  const Object made = give_birth(core, birth, *place);
  team_pools.note_use(birth, *sandbox_template);
  core.sandbox_waits.keep_until(version_number(*made), place);
  return answer_json(201, sandbox_answer(core, *made));
}

http::Response create(Core& core, KeptImages& images, TeamPools& team_pools, const Call& call,
                      Generation generation) {
  const auto key = parse_idempotency_key(call.request);
  if (!key) return create_new(core, images, team_pools, call, generation, key);
  // Of two at once the second finds what the first one made.
  const auto turn = core.turns.take(turn_of(call.holder.ns, *key));
  if (const Object made = find_repeated(core, call.holder.ns, *key))
    return answer_json(201, sandbox_answer(core, *made));
  return create_new(core, images, team_pools, call, generation, key);
}

}  // namespace

void check_timeout(const tenants::KeyHolder& holder, std::int64_t seconds) {
  if (seconds > holder.limits.lifetime_seconds)
    refuse(400, "a timeout of {} s is more than the {} s that your team may ask for", seconds,
           holder.limits.lifetime_seconds);
}

void add_create_routes(Routes& routes, Core& core, KeptImages& images, TeamPools& team_pools) {
  const auto add = [&](const char* pattern, Generation generation) {
    routes.add(
        "POST", pattern,
        [&core, &images, &team_pools, generation](const Call& call) {
          return create(core, images, team_pools, call, generation);
        },
        Routes::Runs::unread);
  };
  add("/sandboxes", Generation::v1);
  add("/v2/sandboxes", Generation::v2);
}

}  // namespace hearth::e2b
