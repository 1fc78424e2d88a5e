#include "e2b/outfitting.h"

#include <utility>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/error.h"
#include "client/kinds.h"
#include "controllers/sandbox_pod.h"
#include "e2b/answers.h"
#include "e2b/network_wish.h"
#include "e2b/state.h"
#include "e2b/view.h"
#include "e2b/words.h"
#include "model/containers.h"
#include "model/front_door.h"
#include "model/read_json.h"
#include "net/workers.h"
#include "pool/reach.h"

namespace hearth::e2b {
namespace {

constexpr std::string_view kSecretKey = "environment";

// What was told of its pod; nothing where that is another sandbox's by now.
std::optional<DressedPods::Pod> dressed_of(const Core& core, const Json& sandbox) {
  auto pod = core.dressed.find(
      {std::string(model::namespace_of(sandbox)), std::string(controllers::pod_name_of(sandbox))});
  if (!pod || pod->sandbox_uid != model::uid_of(sandbox)) return std::nullopt;
  return pod;
}

bool is_ready(const Json& sandbox) {
  return state_of(sandbox) == State::running && model::is_condition_true(sandbox, "Ready");
}

// What keeps it from being Ready, for people.
std::string_view why_not_ready(const Object& sandbox) {
  if (!sandbox) return "there is no such sandbox";
  const Json* ready = model::find_condition(*sandbox, "Ready");
  const std::string_view message = ready ? model::text_at(*ready, {"message"}) : "";
  return message.empty() ? "nothing is known of it yet" : message;
}

// Whether the node made the pod with the token and the variables that it would get now. Open ones
// were not asked for when it was made.
bool is_dressed(const Core& core, const Json& sandbox, const Json& pod) {
  return core.parts.reach != nullptr && is_secure(sandbox) &&
         model::annotation_of(pod, model::kDressAnnotation) == template_id_of(sandbox);
}

bool is_restricted(const pool::Egress& egress) {
  return !egress.allow.empty() || !egress.deny.empty();
}

// Whether the cluster refuses it what it needs (403, 422), in the API's own words: those are all
// that its status tells. No waiting helps, but for an account that comes with a new namespace.
bool is_refused(const Json& sandbox) {
  const Json* ready = model::find_condition(sandbox, "Ready");
  if (!ready || model::text_at(*ready, {"reason"}) != "ReconcilerError") return false;
  const auto seen = model::number_at(*ready, {"observedGeneration"});
  if (seen.value_or(0) < model::generation_of(sandbox)) return false;
  const std::string_view message = model::text_at(*ready, {"message"});
  const auto says = [&](std::string_view words) { return message.find(words) != message.npos; };
  if (says("error looking up service account")) return false;
  return says("\" is forbidden: ") || says("\" is invalid: ");
}

// What the scheduler says of a sandbox that no node has room for; empty for any other.
std::string why_unplaced(const Core& core, const Object& sandbox) {
  const Object pod = sandbox ? core.find_pod(*sandbox) : nullptr;
  const Json* placed = pod ? model::find_condition(*pod, "PodScheduled") : nullptr;
  if (placed == nullptr || model::text_at(*placed, {"reason"}) != "Unschedulable") return {};
  return std::string(model::text_at(*placed, {"message"}));
}

}  // namespace

std::string environment_secret_name(std::string_view id) {
  return std::string(id) + "-e2b";
}

Json environment_secret(const Json& sandbox, const Texts& environment) {
  JsonObject variables;
  for (const auto& [name, value] : environment) variables[name] = value;
  return JsonObject{
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata",
       JsonObject{{"name", environment_secret_name(model::name_of(sandbox))},
                  {"namespace", model::namespace_of(sandbox)},
                  {"labels", JsonObject{{model::kFrontLabel, kFront}}},
                  {"ownerReferences", model::JsonArray{model::controller_reference(sandbox)}}}},
      {"data", JsonObject{{kSecretKey, base64_encode(model::to_text(variables))}}}};
}

Texts read_environment(Core& core, const Json& sandbox) {
  const std::string_view name = model::annotation_of(sandbox, kEnvironmentAnnotation);
  // No other Secret, whatever the annotation says: who may write Sandboxes may not read Secrets.
  if (name.empty() || name != environment_secret_name(model::name_of(sandbox))) return {};
  const Json secret = ask_below(model::name_of(sandbox), [&] {
    return core.parts.client.get(client::kSecrets, model::namespace_of(sandbox), name);
  });
  if (!model::is_controlled_by(secret, model::uid_of(sandbox))) return {};
  const auto text = base64_decode(model::text_at(secret, {"data", kSecretKey}));
  if (!text) fail(Code::invalid, "the Secret '{}' holds no variables", name);
  return Body(JsonObject{{"all", model::read_json(*text)}}).texts("all");
}

std::vector<std::string> variables_of(std::string_view id, std::string_view template_id) {
  return {"E2B_SANDBOX=true", fmt::format("E2B_SANDBOX_ID={}", id),
          fmt::format("E2B_TEMPLATE_ID={}", template_id)};
}

pool::Outfit outfit_of(const Core& core, const Json& sandbox, const Texts& environment) {
  pool::Outfit outfit;
  outfit.environment = variables_of(model::name_of(sandbox), template_id_of(sandbox));
  for (const auto& [name, value] : environment)
    outfit.environment.push_back(fmt::format("{}={}", name, value));
  if (is_secure(sandbox))
    outfit.token = core.parts.tokens.envd_token(model::key_of(sandbox));
  else
    outfit.drops_token = true;
  return outfit;
}

std::string_view container_of(const Json& pod) {
  const Json* status = model::find_container_status(pod, model::first_container_of(pod));
  return status == nullptr ? std::string_view() : model::text_at(*status, {"containerID"});
}

std::string container_now(const Core& core, const Json& sandbox) {
  if (auto dressed = dressed_of(core, sandbox)) return std::move(dressed->container);
  const Object pod = core.find_pod(sandbox);
  return pod && !model::is_deleting(*pod) ? std::string(container_of(*pod)) : std::string();
}

bool has_lost_its_state(const Core& core, const Json& sandbox) {
  const std::string_view had = model::annotation_of(sandbox, kContainerAnnotation);
  if (had.empty()) return false;
  const Object pod = core.find_pod(sandbox);
  if (!pod || model::is_deleting(*pod)) return false;
  const std::string_view now = container_of(*pod);
  if (now.empty()) return false;
  // One that stands still gets no other in its place until it goes on.
  const Json* status = model::find_container_status(*pod, model::first_container_of(*pod));
  return now != had || model::find(*status, {"state", "running"}) == nullptr;
}

Object wait_for_pod(Core& core, const Json& sandbox, Duration patience) {
  const std::string uid(model::uid_of(sandbox));
  const model::Key key{std::string(model::namespace_of(sandbox)),
                       std::string(controllers::pod_name_of(sandbox))};
  const auto is_here = [&](const Json* pod) {
    return pod != nullptr && !model::is_deleting(*pod) && model::is_controlled_by(*pod, uid) &&
           core.outfitter().can_outfit(*pod);
  };
  const auto found = core.pod_waits.until(key, is_here, patience);
  if (!found)
    fail(Code::timeout, "the pod of sandbox '{}' could not be reached", model::name_of(sandbox));
  return *found;
}

Object wait_until_ready(Core& core, const Json& sandbox, Duration patience) {
  const model::Key key = model::key_of(sandbox);
  const std::string uid(model::uid_of(sandbox));
  const std::uint64_t version = version_number(sandbox);
  bool is_gone = false;
  const auto is_so = [&](const Json* object) {
    // Right after it was made, the cache may not know it yet. If it has heard of that and has
    // nothing, it is gone already.
    if (object == nullptr)
      return is_gone = core.sandbox_waits.has_told(version) &&
                       core.sandboxes.find(key.ns, key.name) == nullptr;
    is_gone = model::uid_of(*object) != uid || state_of(*object) == State::none;
    return is_gone || is_ready(*object) || is_refused(*object);
  };
  const auto found = core.sandbox_waits.until(key, is_so, patience);
  if (is_gone) refuse_unknown_sandbox(key.name);
  if (found && is_refused(**found))
    fail(Code::forbidden, "sandbox '{}' cannot start: {}", key.name, why_not_ready(*found));
  if (!found) {
    const Object last = core.sandboxes.find(key.ns, key.name);
    if (const std::string why = why_unplaced(core, last); !why.empty())
      throw Refusal(503, fmt::format("there is no room for another sandbox: {}", why), not_again());
    fail(Code::timeout, "sandbox '{}' has not become ready: {}", key.name, why_not_ready(last));
  }
  return *found;
}

bool find_dressed(Core& core, const Json& sandbox, const Texts& environment) {
  if (!environment.empty() || !is_secure(sandbox) || is_restricted(egress_of(sandbox)))
    return false;
  const auto pod = dressed_of(core, sandbox);
  if (!pod || pod->template_id != template_id_of(sandbox)) return false;
  core.outfitted.remember(model::key_of(sandbox), pod->container);
  return true;
}

void outfit_pod(Core& core, const Json& sandbox, const Json& pod, const Texts& environment) {
  const model::Key key = model::key_of(sandbox);
  const std::string_view container = container_of(pod);
  if (core.outfitted.has(key, container)) return;
  const bool wants_outfit = !environment.empty() || !is_dressed(core, sandbox, pod);
  const pool::Egress egress = egress_of(sandbox);
  const bool wants_walls = is_restricted(egress) && core.parts.reach != nullptr;
  if (wants_outfit || wants_walls)
    ask_below(key.name, [&] {
      const net::Workers::Aside aside;
      if (wants_outfit) core.outfitter().outfit(pod, outfit_of(core, sandbox, environment));
      if (wants_walls) core.parts.reach->set_egress(pod, egress);
    });
  core.outfitted.remember(key, container);
}

bool Outfitted::has(const model::Key& sandbox, std::string_view container) const {
  const std::lock_guard lock(mutex_);
  const auto found = containers_.find(sandbox);
  return found != containers_.end() && !container.empty() && found->second == container;
}

void Outfitted::remember(const model::Key& sandbox, std::string_view container) {
  const std::lock_guard lock(mutex_);
  containers_.insert_or_assign(sandbox, std::string(container));
}

void Outfitted::forget(const model::Key& sandbox) {
  const std::lock_guard lock(mutex_);
  containers_.erase(sandbox);
}

}  // namespace hearth::e2b
