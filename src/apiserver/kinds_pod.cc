// The strategy of pods: what may change once they exist, and their status at the beginning.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apiserver/kinds_strategies_internal.h"
#include "apiserver/pods.h"

namespace hearth::apiserver {
namespace {

constexpr std::int64_t kMostSeconds = 2147483647;

// What one container, or the pod as a whole, asks for of cpu and memory.
struct Demand {
  bool is_any = false;     // something is requested or limited
  bool is_limited = true;  // both are limited
  bool is_matched = true;  // and requested as much as limited
};

Demand demand_of(const JsonObject& resources) {
  Demand demand;
  const JsonObject& requests = as_object(resources.if_contains("requests"));
  const JsonObject& limits = as_object(resources.if_contains("limits"));
  for (const std::string_view name : {"cpu", "memory"}) {
    const auto asked = quantity_of(requests.if_contains(name)).value_or(model::Quantity());
    const auto most = quantity_of(limits.if_contains(name)).value_or(model::Quantity());
    demand.is_any |= asked > model::Quantity() || most > model::Quantity();
    demand.is_limited &= most > model::Quantity();
    demand.is_matched &= asked == model::Quantity() || asked == most;
  }
  return demand;
}

bool same_toleration(JsonObject left, JsonObject right) {
  left.erase("tolerationSeconds");
  right.erase("tolerationSeconds");
  return model::is_same(left, right);
}

void check_tolerations_only_added(Errors& errors, const JsonObject& next, const JsonObject& old) {
  for (const Item before : items_in(old, "tolerations", "")) {
    bool is_there = false;
    for (const Item now : items_in(next, "tolerations", ""))
      is_there |= same_toleration(before.object, now.object);
    if (is_there) continue;
    errors.push_back(
        model::forbidden("spec.tolerations",
                         "existing toleration can not be modified except its tolerationSeconds"));
    return;
  }
}

void check_deadline_change(Errors& errors, const JsonObject& next, const JsonObject& old) {
  const std::string field = "spec.activeDeadlineSeconds";
  const auto now = number_in(next, "activeDeadlineSeconds");
  const auto before = number_in(old, "activeDeadlineSeconds");
  if (!now && before)
    errors.push_back(
        model::invalid(field, "null", "must not update from a positive integer to nil value"));
  if (!now) return;
  if (*now < 0 || *now > kMostSeconds)
    errors.push_back(
        model::invalid(field, std::to_string(*now), "must be between 0 and 2147483647, inclusive"));
  else if (before && *before < *now)
    errors.push_back(model::invalid(field, std::to_string(*now),
                                    "must be less than or equal to previous value"));
}

// Whether containers came or went, which nothing else needs to be said about.
bool has_other_containers(Errors& errors, const JsonObject& next, const JsonObject& old) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    const JsonArray* now = array_in(next, list);
    const JsonArray* before = array_in(old, list);
    if ((now ? now->size() : 0) == (before ? before->size() : 0)) continue;
    errors.push_back(model::forbidden(fmt::format("spec.{}", list),
                                      "pod updates may not add or remove containers"));
    return true;
  }
  return false;
}

void copy_images(JsonObject& spec, const JsonObject& from, std::string_view list) {
  JsonArray* containers = array_in(spec, list);
  const JsonArray* others = array_in(from, list);
  if (!containers || !others) return;
  for (std::size_t i = 0; i < containers->size() && i < others->size(); ++i) {
    JsonObject* container = (*containers)[i].if_object();
    const JsonObject* other = (*others)[i].if_object();
    if (!container || !other) continue;
    if (const Json* image = other->if_contains("image")) (*container)["image"] = *image;
  }
}

void copy_member(JsonObject& to, const JsonObject& from, std::string_view name) {
  if (const Json* value = from.if_contains(name))
    to[name] = *value;
  else
    to.erase(name);
}

// The members of the spec that differ although they may not.
std::vector<std::string> frozen_changes(const JsonObject& next, const JsonObject& old) {
  JsonObject spec = next;
  copy_images(spec, old, "containers");
  copy_images(spec, old, "initContainers");
  copy_member(spec, old, "activeDeadlineSeconds");
  copy_member(spec, old, "tolerations");
  copy_member(spec, old, "schedulingGates");
  const auto grace = number_in(old, "terminationGracePeriodSeconds");
  if (grace && *grace < 0 && number_in(spec, "terminationGracePeriodSeconds") == 1)
    copy_member(spec, old, "terminationGracePeriodSeconds");
  std::vector<std::string> changed;
  for (const auto& [name, value] : spec) {
    const Json* before = old.if_contains(name);
    if (before ? !model::is_same(value, *before) : !value.is_null())
      changed.push_back(fmt::format("spec.{}", std::string_view(name)));
  }
  for (const auto& [name, value] : old)
    if (!spec.contains(name) && !value.is_null())
      changed.push_back(fmt::format("spec.{}", std::string_view(name)));
  return changed;
}

void check_pod_update(Errors& errors, const JsonObject& next, const JsonObject& old) {
  if (has_other_containers(errors, next, old)) return;
  check_deadline_change(errors, next, old);
  check_tolerations_only_added(errors, next, old);
  const std::vector<std::string> changed = frozen_changes(next, old);
  if (changed.empty()) return;
  errors.push_back(model::forbidden(
      "spec", fmt::format("pod updates may not change fields other than `spec.containers[*].image`,"
                          "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
                          "`spec.tolerations` (only additions to existing tolerations),"
                          "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
                          "previously negative)\nchanged: {}",
                          fmt::join(changed, ", "))));
}

// The single address and the list of addresses say the same; the single one is believed.
void match_addresses(JsonObject& status) {
  const std::string_view address = text_in(status, "podIP");
  const JsonArray* list = array_in(status, "podIPs");
  const std::string_view first =
      list && !list->empty() ? text_in(as_object(list->front()), "ip") : std::string_view();
  if (address == first) return;
  if (address.empty())
    status["podIP"] = std::string(first);
  else
    status["podIPs"] = JsonArray{JsonObject{{"ip", address}}};
}

class PodStrategy : public Strategy {
 public:
  void fill_in(Json& object) const override {
    if (!object.is_object()) return;
    if (JsonObject* spec = object_in(object.get_object(), "spec")) fill_in_pod_spec(*spec);
    if (JsonObject* status = object_in(object.get_object(), "status")) match_addresses(*status);
  }
  void prepare_create(Json& object) const override {
    model::make_object_at(object, {})["status"] =
        JsonObject{{"phase", "Pending"}, {"qosClass", quality_of_service(object)}};
  }
  void prepare_update(Json& next, const Json& old) const override { keep_status(next, old); }
  std::vector<model::FieldError> validate(const Json& next, const Json* old,
                                          std::string_view subresource) const override {
    Errors errors;
    const bool is_ephemeral = subresource == "ephemeralcontainers";
    if (!subresource.empty() && !is_ephemeral) return {};
    const JsonObject& spec = as_object(model::find(next, {"spec"}));
    check_pod_spec(errors, spec);
    check_ephemeral_containers(errors, spec);
    check_pod_context(errors, spec);
    if (is_ephemeral) {
      if (old) check_ephemeral_update(errors, spec, as_object(model::find(*old, {"spec"})));
      return errors.take();
    }
    if (const JsonArray* late = array_in(spec, "ephemeralContainers");
        !old && late && !late->empty())
      errors.push_back(model::forbidden("spec.ephemeralContainers", "cannot be set on create"));
    if (old) check_pod_update(errors, spec, as_object(model::find(*old, {"spec"})));
    return errors.take();
  }
  bool allows_unconditional_update() const override { return true; }
};

void set_scheduled(Json& pod, std::string_view now) {
  JsonObject& status = model::make_object_at(pod, {"status"});
  JsonArray* conditions = array_in(status, "conditions");
  if (!conditions) conditions = &status["conditions"].emplace_array();
  JsonObject condition{{"type", "PodScheduled"},
                       {"status", "True"},
                       {"lastProbeTime", nullptr},
                       {"lastTransitionTime", now}};
  for (Json& one : *conditions)
    if (text_in(as_object(one), "type") == "PodScheduled") {
      one = std::move(condition);
      return;
    }
  conditions->emplace_back(std::move(condition));
}

void merge_members(Json& pod, const Json& binding, std::string_view name) {
  const JsonObject* given = model::object_at(binding, {"metadata", name});
  if (!given || given->empty()) return;
  JsonObject& mine = model::make_object_at(pod, {"metadata", name});
  for (const auto& [key, value] : *given) mine[key] = value;
}

}  // namespace

std::string_view quality_of_service(const Json& pod) {
  const JsonObject& spec = as_object(model::find(pod, {"spec"}));
  std::vector<Demand> demands;
  if (const JsonObject* resources = object_in(spec, "resources"))
    demands.push_back(demand_of(*resources));
  else
    for (const std::string_view list : {"containers", "initContainers"})
      for (const Item container : items_in(spec, list, std::string(list)))
        demands.push_back(demand_of(as_object(container.object.if_contains("resources"))));
  bool is_any = false;
  bool is_guaranteed = true;
  for (const Demand& demand : demands) {
    is_any |= demand.is_any;
    is_guaranteed &= demand.is_limited && demand.is_matched;
  }
  if (!is_any) return "BestEffort";
  return is_guaranteed ? "Guaranteed" : "Burstable";
}

void bind_pod(Json& pod, const Json& binding, std::string_view now) {
  const std::string name(model::text_at(pod, {"metadata", "name"}));
  const std::string_view node = model::text_at(binding, {"target", "name"});
  const std::string_view kind = model::text_at(binding, {"target", "kind"});
  Errors errors;
  if (!kind.empty()) check_one_of(errors, "target.kind", kind, {"Node", "<empty>"});
  if (node.empty()) errors.push_back(model::required("target.name"));
  if (!errors.empty()) model::throw_invalid({"", "Binding"}, name, errors.take());
  const model::GroupResource resource{"", "pods/binding"};
  if (!is_unset(model::find(pod, {"metadata", "deletionTimestamp"})))
    model::throw_conflict(
        resource, name, fmt::format("pod {} is being deleted, cannot be assigned to a host", name));
  if (const std::string_view current = model::text_at(pod, {"spec", "nodeName"}); !current.empty())
    model::throw_conflict(resource, name,
                          fmt::format("pod {} is already assigned to node \"{}\"", name, current));
  if (const JsonArray* gates = model::array_at(pod, {"spec", "schedulingGates"});
      gates && !gates->empty())
    model::throw_conflict(resource, name,
                          fmt::format("pod {} has non-empty .spec.schedulingGates", name));
  model::make_object_at(pod, {"spec"})["nodeName"] = std::string(node);
  merge_members(pod, binding, "annotations");
  merge_members(pod, binding, "labels");
  set_scheduled(pod, now);
}

const Strategy& pod_strategy() {
  static const PodStrategy kStrategy;
  return kStrategy;
}

}  // namespace hearth::apiserver
