#include "e2b/birth.h"

#include <future>
#include <utility>

#include "base/log.h"
#include "base/on_failure.h"
#include "client/kinds.h"
#include "controllers/blueprint.h"
#include "e2b/life.h"
#include "e2b/outfitting.h"
#include "e2b/state.h"
#include "e2b/template_reference.h"
#include "e2b/words.h"
#include "metrics/registry.h"
#include "model/agent_sandbox.h"
#include "model/front_door.h"
#include "model/names.h"
#include "model/template_ref.h"
#include "net/workers.h"
#include "pool/allocator.h"
#include "reconcile/manager.h"

namespace hearth::e2b {
namespace {

constexpr std::string_view kByTemplate = "e2b-template";
// Losing a race for a warm sandbox is rare; losing it so often is something else.
constexpr int kMostTakes = 16;
// A member that is Ready has a pod; its cache may be a moment behind.
constexpr Duration kPodPatience = std::chrono::seconds(5);

// Which namespace's pool of which template.
std::string index_value(std::string_view ns, const model::Key& sandbox_template) {
  return std::string(ns) + ":" + sandbox_template.text();
}

bool can_be_label(std::string_view key, std::string_view value) {
  return model::check_qualified_name(key).empty() && model::check_label_value(value).empty();
}

void put_metadata(const Texts& metadata, JsonObject& labels, JsonObject& annotations) {
  if (metadata.empty()) return;
  JsonObject all;
  for (const auto& [name, value] : metadata) {
    all[name] = value;
    const std::string key = std::string(model::kMetadataLabelPrefix) + name;
    if (can_be_label(key, value)) labels[key] = value;
  }
  annotations[model::kMetadataAnnotation] = model::to_text(all);
}

void merge_into(JsonObject& to, const JsonObject& from) {
  for (const auto& [key, value] : from) {
    const JsonObject* inner = value.if_object();
    Json& there = to[key];
    if (inner != nullptr && there.is_object())
      merge_into(there.get_object(), *inner);
    else
      there = value;
  }
}

void drop_nulls(JsonObject& object) {
  for (auto each = object.begin(); each != object.end();) {
    if (each->value().is_null()) {
      each = object.erase(each);
      continue;
    }
    if (each->value().is_object()) drop_nulls(each->value().get_object());
    ++each;
  }
}

// When it became its client's, and when it ends unless its start takes until `usable`.
void put_times(const Birth& birth, Time started, Time usable, Json& patch) {
  model::make_object_at(patch, {"metadata", "annotations"})[model::kStartedAnnotation] =
      time_text(started);
  put_end(patch, usable + std::chrono::seconds(birth.timeout_seconds), !pauses_at_end(birth.marks));
}

// Takes away what only members of pools say, on the Sandbox and on its pod.
void leave_pool(const Json& sandbox, Json& patch) {
  const auto drop_labels = [](JsonObject& labels) {
    for (const std::string_view each :
         {model::kPoolLabel, model::kPodTemplateHashLabel, model::kTemplateHashLabel})
      labels[each] = nullptr;
  };
  drop_labels(model::make_object_at(patch, {"metadata", "labels"}));
  JsonObject& metadata = patch.at("metadata").get_object();
  metadata["ownerReferences"] = nullptr;
  model::make_object_at(patch, {"metadata", "annotations"})[model::kPodNameAnnotation] =
      model::name_of(sandbox);
  Json& pod = model::make_object_at(patch, {"spec", "podTemplate"})["metadata"];
  drop_labels(model::make_object_at(pod, {"labels"}));
  const Json* annotations =
      model::find(sandbox, {"spec", "podTemplate", "metadata", "annotations"});
  if (annotations && model::text_at(*annotations, {model::kSafeToEvictAnnotation}) == "true")
    model::make_object_at(pod, {"annotations"})[model::kSafeToEvictAnnotation] = nullptr;
}

void put_container(const Core& core, const Json& sandbox, Json& patch) {
  const std::string container = container_now(core, sandbox);
  if (!container.empty())
    model::make_object_at(patch, {"metadata", "annotations"})[kContainerAnnotation] = container;
}

void name_environment(Json& patch, std::string_view id, const Texts& environment) {
  if (environment.empty()) return;
  model::make_object_at(patch, {"metadata", "annotations"})[kEnvironmentAnnotation] =
      environment_secret_name(id);
}

pool::Wish wish_of(const Birth& birth) {
  return {.pool = *birth.pool, .tenant = birth.tenant, .priority = 0, .fits = [](const Json& each) {
            return is_sandbox_id(model::name_of(each)) && model::is_condition_true(each, "Ready");
          }};
}

// One that is there, or that comes soon enough.
std::optional<pool::Hold> take(Core& core, const Birth& birth) {
  pool::Allocator& allocator = *core.parts.allocator;
  if (auto hold = allocator.take(wish_of(birth))) return hold;
  // Whoever would wait for a later one than those that are coming is sooner served cold.
  const pool::Stock stock = allocator.stock(*birth.pool);
  if (stock.starting + stock.unready <= stock.waiting) return {};
  auto served = std::make_shared<std::promise<std::optional<pool::Hold>>>();
  auto future = served->get_future();
  const auto ticket = allocator.wait(
      wish_of(birth), core.options.warm_patience,
      [served](std::optional<pool::Hold> hold) { served->set_value(std::move(hold)); });
  const net::Workers::Aside aside;
  return future.get();
}

// Its words are ours, or a create's that were checked; how many there are is its client's to say.
bool is_checked(const Json& member, const Json& patch) {
  return model::annotation_bytes(member) + model::annotation_bytes(patch) <=
         model::kMostAnnotationBytes;
}

// The one write. Null when somebody else has it now.
Object adopt(Core& core, const Birth& birth, Census::Place& place, pool::Hold hold) {
  const Object member = hold.sandbox();
  place.name(model::name_of(*member));
  if (core.parts.chosen) core.parts.chosen(model::key_of(*member));
  Json patch = birth.marks;
  put_times(birth, core.now(), core.now(), patch);
  leave_pool(*member, patch);
  put_container(core, *member, patch);
  name_environment(patch, model::name_of(*member), birth.environment);
  const client::PatchOptions options{.is_checked = is_checked(*member, patch),
                                     .news_can_wait = true};
  return core.parts.allocator->commit(core.parts.client, std::move(hold), std::move(patch),
                                      options);
}

Json cold_sandbox(const Core& core, const Birth& birth) {
  const std::string id = new_sandbox_id();
  const std::string hash = model::name_hash(birth.template_id);
  Json spec = birth.spec();
  model::make_object_at(spec, {"podTemplate", "metadata", "labels"})[model::kTemplateRefHashLabel] =
      hash;
  if (is_secure(birth.marks))
    model::make_object_at(spec, {"podTemplate", "metadata",
                                 "annotations"})[model::kDressAnnotation] = birth.template_id;
  Json made = JsonObject{
      {"apiVersion", "agents.x-k8s.io/v1beta1"},
      {"kind", "Sandbox"},
      {"metadata", JsonObject{{"name", id},
                              {"namespace", birth.ns},
                              {"labels", JsonObject{{model::kLaunchTypeLabel, "cold"},
                                                    {model::kTemplateRefHashLabel, hash}}}}},
      {"spec", std::move(spec)}};
  merge_into(made.get_object(), birth.marks.get_object());
  put_times(birth, core.now(), core.latest_start(), made);
  name_environment(made, id, birth.environment);
  drop_nulls(made.at("metadata").get_object());
  drop_nulls(made.at("spec").get_object());
  return made;
}

void keep_environment(Core& core, const Json& sandbox, const Birth& birth) {
  if (!birth.environment.empty())
    core.parts.client.create(client::kSecrets, environment_secret(sandbox, birth.environment));
}

void complete(Core& core, const Json& sandbox, const Birth& birth, Duration pod_patience) {
  if (find_dressed(core, sandbox, birth.environment)) return;
  const Object pod = wait_for_pod(core, sandbox, pod_patience);
  outfit_pod(core, sandbox, *pod, birth.environment);
}

// Who makes it has its turn until it is done: the keeper has no part in it meanwhile.
Object give_warm(Core& core, const Birth& birth, Census::Place& place) {
  if (core.parts.allocator == nullptr || !birth.pool) return nullptr;
  for (int i = 0; i < kMostTakes; ++i) {
    auto hold = take(core, birth);
    if (!hold) return nullptr;
    // Not before: one that is to come does so through those who give way.
    const reconcile::RightOfWay::Urgent urgent(core.parts.manager.right_of_way());
    const auto turn = core.turns.take(model::key_of(*hold->sandbox()));
    Object warm = adopt(core, birth, place, std::move(*hold));
    if (!warm) continue;
    OnFailure undo([&] { discard(core, *warm); });
    keep_environment(core, *warm, birth);
    complete(core, *warm, birth, kPodPatience);
    core.announce(*warm);
    undo.release();
    return warm;
  }
  return nullptr;
}

Object give_cold(Core& core, const Birth& birth, Census::Place& place) {
  const Json wanted = cold_sandbox(core, birth);
  place.name(model::name_of(wanted));
  const auto turn = core.turns.take(model::key_of(wanted));
  const Json made = core.parts.client.create(client::kSandboxes, wanted);
  OnFailure undo([&] { discard(core, made); });
  // First: whoever may not keep it need not wait to be told.
  keep_environment(core, made, birth);
  const Object ready = wait_until_ready(core, made, core.options.start_patience);
  complete(core, *ready, birth, core.options.start_patience);
  Json times = JsonObject();
  put_times(birth, core.now(), core.now(), times);
  put_container(core, *ready, times);
  const Object begun = std::make_shared<const Json>(core.patch_sandbox(*ready, std::move(times)));
  undo.release();
  return begun;
}

}  // namespace

Json marks_of(const CreateRequest& request, const Json& sandbox_template) {
  const std::string_view id = template_id(sandbox_template);
  JsonObject labels{{model::kFrontLabel, kFront}};
  if (model::check_label_value(id).empty()) labels[model::kTemplateLabel] = id;
  JsonObject annotations = network_annotations(request.network);
  annotations[model::kTemplateRefAnnotation] = id;
  annotations[kMadeOfAnnotation] = model::key_of(sandbox_template).text();
  annotations[kTimeoutAnnotation] = std::to_string(request.timeout_seconds);
  annotations[model::kOnTimeoutAnnotation] = request.pauses ? "pause" : "kill";
  annotations[model::kAccessAnnotation] = request.is_secure ? "token" : "open";
  if (!request.pauses_memory) annotations[kTimeoutPauseAnnotation] = "files";
  if (request.wakes) annotations[model::kAutoResumeAnnotation] = "true";
  put_metadata(request.metadata, labels, annotations);
  Json marks = JsonObject{{"metadata", JsonObject{{"labels", std::move(labels)},
                                                  {"annotations", std::move(annotations)}}}};
  return marks;
}

void put_access_rules(const Json& sandbox_template, Json& marks) {
  JsonObject& annotations = model::make_object_at(marks, {"metadata", "annotations"});
  for (const auto& [key, value] : controllers::access_rules_of(sandbox_template)) {
    const bool is_door = key == model::kAccessAnnotation || key == model::kTrafficAnnotation;
    const Json* said = annotations.if_contains(key);
    if ((is_door && value != "open") || said == nullptr || said->is_null())
      annotations[key] = value;
  }
}

void index_pools(client::WatchCache& pools) {
  pools.add_index(std::string(kByTemplate), [](const Json& pool) -> std::vector<std::string> {
    if (model::annotation_of(pool, model::kNamesAnnotation) != "id") return {};
    return {index_value(model::namespace_of(pool), model::template_key_of(pool))};
  });
}

std::optional<model::Key> find_pool(const Core& core, std::string_view ns,
                                    const Json& sandbox_template) {
  for (const Object& pool :
       core.pools.find_by_index(kByTemplate, index_value(ns, model::key_of(sandbox_template))))
    if (!model::is_deleting(*pool)) return model::key_of(*pool);
  return {};
}

Object give_birth(Core& core, const Birth& birth, Census::Place& place) {
  const auto started = std::chrono::steady_clock::now();
  Object made = give_warm(core, birth, place);
  const std::string_view path = made ? "warm" : "cold";
  if (!made) made = give_cold(core, birth, place);
  core.parts.metrics
      .histogram("hearth_e2b_create_seconds", "From the request to a sandbox that is usable.",
                 metrics::latency_buckets(), {{"path", std::string(path)}})
      .observe(std::chrono::steady_clock::now() - started);
  return made;
}

void discard(Core& core, const Json& sandbox) {
  try {
    kill(core, sandbox);
  } catch (const std::exception& error) {
    log::warning("a sandbox that could not be used stays until its end",
                 {{"sandbox", model::key_of(sandbox).text()}, {"error", error.what()}});
  }
  core.outfitted.forget(model::key_of(sandbox));
}

}  // namespace hearth::e2b
