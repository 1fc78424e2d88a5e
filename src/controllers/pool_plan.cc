#include "controllers/pool_plan.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/id.h"
#include "model/agent_sandbox.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "model/template_ref.h"

namespace hearth::controllers {
namespace {

using model::JsonArray;
using model::JsonObject;

// A deadline is looked at a little later than it is: timestamps of objects have whole seconds.
constexpr Duration kDeadlineSlack = std::chrono::seconds(2);

constexpr std::size_t kIdLength = 20;  // after the "i"

bool is_ready(const Json& sandbox) {
  return model::is_condition_true(sandbox, "Ready");
}

bool replaces_stale(const Json& pool) {
  return model::text_at(pool, {"spec", "updateStrategy", "type"}) == "Recreate";
}

class Planner {
 public:
  explicit Planner(const PoolView& view)
      : view_(view), uid_(model::uid_of(view.pool)), replaces_stale_(replaces_stale(view.pool)) {}

  PoolPlan plan() {
    for (const Object& member : view_.members) sort(member);
    return std::move(plan_);
  }

 private:
  void sort(const Object& member) {
    const bool is_ours = model::is_controlled_by(*member, uid_);
    if (model::is_deleting(*member) || (is_ours && view_.is_ending(model::uid_of(*member)))) {
      if (is_ours) ++plan_.terminating;
      return;
    }
    const bool is_orphan = !is_ours && !model::controller_of(*member);
    if (!is_ours && !is_orphan) return;
    const bool is_up = is_ready(*member);
    if ((is_orphan || replaces_stale_) && is_member_stale(*member)) {
      plan_.replace.push_back(member);
      return;
    }
    if (is_orphan)
      plan_.adopt.push_back(member);
    else if (!is_up && is_stuck(*member))
      return plan_.replace.push_back(member);
    else if (model::label_of(*member, model::kLaunchTypeLabel) != "warm")
      plan_.mark.push_back(member);
    plan_.active.push_back(member);
    if (is_up) ++plan_.ready;
  }

  bool is_member_stale(const Json& member) const {
    return view_.sandbox_template != nullptr &&
           is_stale(member, *view_.sandbox_template, *view_.blueprint);
  }

  // Of one that is not Ready. Also notes when to look again.
  bool is_stuck(const Json& member) {
    const auto created = model::created_at(member);
    if (!created) return false;
    const Duration left = *created + view_.readiness_grace - view_.now;
    if (left >= Duration::zero()) {
      const Duration deadline = left + kDeadlineSlack;
      plan_.next_deadline = std::min(plan_.next_deadline.value_or(deadline), deadline);
      return false;
    }
    if (!is_unschedulable(member)) return true;
    ++plan_.unschedulable;
    return false;
  }

  const PoolView& view_;
  const std::string_view uid_;
  const bool replaces_stale_;
  PoolPlan plan_;
};

Json count_or_null(std::uint32_t count) {
  return count == 0 ? Json(nullptr) : Json(count);
}

}  // namespace

PoolPlan plan_pool(const PoolView& view) {
  return Planner(view).plan();
}

std::uint32_t desired_replicas(const Json& pool) {
  const std::int64_t wanted = model::number_at(pool, {"spec", "replicas"}).value_or(1);
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(wanted, 0, std::numeric_limits<std::int32_t>::max()));
}

Json make_member(const Json& pool, const Blueprint& blueprint, bool may_evict) {
  const std::string_view pool_name = model::name_of(pool);
  const std::string template_name = model::template_key_of(pool).name;
  const JsonObject shared{{model::kPoolLabel, model::name_hash(pool_name)},
                          {model::kTemplateRefHashLabel, model::name_hash(template_name)},
                          {model::kPodTemplateHashLabel, blueprint.pod_hash},
                          {model::kTemplateHashLabel, blueprint.hash}};
  JsonObject labels = shared;
  labels[model::kLaunchTypeLabel] = "warm";
  labels[model::kCreatedByLabel] = "controller";
  Json spec = blueprint.spec;
  JsonObject& pod_labels = model::make_object_at(spec, {"podTemplate", "metadata", "labels"});
  for (const auto& label : shared) pod_labels[label.key()] = label.value();
  if (may_evict) {
    // emplace() leaves alone what the template says itself.
    model::make_object_at(spec, {"podTemplate", "metadata", "annotations"})
        .emplace(model::kSafeToEvictAnnotation, "true");
  }
  const bool is_for_e2b = model::annotation_of(pool, model::kNamesAnnotation) == "id";
  if (is_for_e2b)
    model::make_object_at(
        spec, {"podTemplate", "metadata", "annotations"})[model::kDressAnnotation] = template_name;
  // Tells who made it, whatever it is called and whoever has it by then.
  JsonObject metadata{{"generateName", std::string(pool_name) + "-"},
                      {"namespace", model::namespace_of(pool)}};
  if (is_for_e2b) metadata["name"] = "i" + random_alphanumeric(kIdLength);
  metadata["labels"] = std::move(labels);
  JsonObject annotations = blueprint.access;
  annotations[model::kTemplateRefAnnotation] = template_name;
  metadata["annotations"] = std::move(annotations);
  metadata["ownerReferences"] = JsonArray{model::controller_reference(pool)};
  return JsonObject{{"apiVersion", "agents.x-k8s.io/v1beta1"},
                    {"kind", "Sandbox"},
                    {"metadata", std::move(metadata)},
                    {"spec", std::move(spec)}};
}

std::vector<Object> least_missed(std::vector<Object> active, std::size_t count) {
  std::ranges::sort(active, [](const Object& left, const Object& right) {
    if (is_ready(*left) != is_ready(*right)) return is_ready(*right);
    const auto one = model::created_at(*left);
    const auto other = model::created_at(*right);
    return one != other ? one > other : model::name_of(*left) < model::name_of(*right);
  });
  active.resize(std::min(count, active.size()));
  return active;
}

Json pool_status(const Json& pool, const PoolPlan& plan) {
  return JsonObject{
      {"replicas", count_or_null(static_cast<std::uint32_t>(plan.active.size()))},
      {"readyReplicas", count_or_null(plan.ready)},
      {"selector", std::string(model::kPoolLabel) + "=" + model::name_hash(model::name_of(pool))},
      {"observedGeneration", model::generation_of(pool)}};
}

bool has_status(const Json& pool, const Json& status) {
  return std::ranges::all_of(status.as_object(), [&](const auto& member) {
    const Json* present = model::find(pool, {"status", std::string_view(member.key())});
    if (present == nullptr) return member.value().is_null();
    return model::is_same(*present, member.value());
  });
}

std::string_view member_state(const Json& sandbox) {
  if (is_ready(sandbox)) return "ready";
  const Json* finished = model::find_condition(sandbox, "Finished");
  if (finished == nullptr || model::text_at(*finished, {"status"}) != "True") return "pending";
  return model::text_at(*finished, {"reason"}) == "PodSucceeded" ? "succeeded" : "failed";
}

bool is_unschedulable(const Json& sandbox) {
  const Json* scheduled = model::find_condition(sandbox, "PodScheduled");
  return scheduled != nullptr && model::text_at(*scheduled, {"status"}) == "False" &&
         model::text_at(*scheduled, {"reason"}) == "Unschedulable";
}

}  // namespace hearth::controllers
