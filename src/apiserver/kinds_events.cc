// Kinds that tell of time: Event in its two shapes, and Lease.
//
// Events are kept in the older shape, core/v1; events.k8s.io/v1 is a view of the same objects.
#include <fmt/format.h>

#include "apiserver/kinds_strategies_internal.h"

namespace hearth::apiserver {
namespace {

struct Renamed {
  std::string_view core;
  std::string_view event;
};
// What the two shapes call the same thing.
constexpr Renamed kRenamed[] = {
    {"involvedObject", "regarding"},
    {"message", "note"},
    {"source", "deprecatedSource"},
    {"count", "deprecatedCount"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"reportingComponent", "reportingController"},
};

void rename(JsonObject& object, std::string_view from, std::string_view to) {
  Json* member = object.if_contains(from);
  if (!member) return;
  Json value = std::move(*member);
  object.erase(from);
  object[to] = std::move(value);
}

// These are always written, also when there is nothing to say.
void fill_in_core_event(JsonObject& event) {
  set_default(event, "source", JsonObject());
  for (const std::string_view time : {"firstTimestamp", "lastTimestamp", "eventTime"})
    if (!event.contains(time)) event[time] = nullptr;
  set_default(event, "reportingComponent", "");
  set_default(event, "reportingInstance", "");
}

void to_core(Json& object) {
  JsonObject& event = model::make_object_at(object, {});
  if (text_in(event, "apiVersion") == "v1") return;
  event["apiVersion"] = "v1";
  for (const Renamed& name : kRenamed) rename(event, name.event, name.core);
  fill_in_core_event(event);
}

void from_core(Json& object) {
  JsonObject& event = model::make_object_at(object, {});
  event["apiVersion"] = "events.k8s.io/v1";
  for (const Renamed& name : kRenamed) rename(event, name.core, name.event);
  for (const std::string_view name : {"reportingController", "reportingInstance"})
    if (is_unset(event, name)) event.erase(name);
}

void check_at_most(Errors& errors, const JsonObject& event, std::string_view name,
                   std::size_t most) {
  if (text_in(event, name).size() > most)
    errors.push_back(model::invalid(std::string(name), "\"\"",
                                    fmt::format("can have at most {} characters", most)));
}

// What every event must be like, whichever way it came; `controller` is what the request calls the
// reporting component.
void check_event(Errors& errors, const JsonObject& event, std::string_view controller) {
  const std::string_view ns = text_in(as_object(event.if_contains("metadata")), "namespace");
  const std::string_view about =
      text_in(as_object(event.if_contains("involvedObject")), "namespace");
  const bool is_old = is_unset(event, "eventTime");
  const bool is_alike = about.empty()
                            ? ns.empty() || ns == "default" || (!is_old && ns == "kube-system")
                            : !is_old || about == ns;
  if (!is_alike)
    errors.push_back(model::invalid("involvedObject.namespace", json_quote(about),
                                    "does not match event.namespace"));
  if (is_old) return;
  check_required(errors, event, "reportingComponent", std::string(controller));
  check_required(errors, event, "reportingInstance", "reportingInstance");
  check_at_most(errors, event, "reportingInstance", 128);
  check_required(errors, event, "action", "action");
  check_at_most(errors, event, "action", 128);
  check_required(errors, event, "reason", "reason");
  check_at_most(errors, event, "reason", 128);
  check_at_most(errors, event, "message", 1024);
}

void check_series(Errors& errors, const JsonObject& event) {
  const JsonObject* series = object_in(event, "series");
  if (!series) return;
  if (number_in(*series, "count").value_or(0) < 2)
    errors.push_back(model::invalid("series.count", "\"\"", "should be at least 2"));
  check_required(errors, *series, "lastObservedTime", "series.lastObservedTime");
}

// The newer API is strict: the fields of the old one are for reading.
void check_new_event(Errors& errors, const JsonObject& event) {
  check_series(errors, event);
  check_required(errors, event, "eventTime", "eventTime");
  const std::string_view type = text_in(event, "type");
  if (type != "Normal" && type != "Warning")
    errors.push_back(model::invalid("type", "\"\"", fmt::format("has invalid value: {}", type)));
  for (const std::string_view name : {"firstTimestamp", "lastTimestamp"})
    if (!is_unset(event, name))
      errors.push_back(model::invalid(std::string(name), "\"\"", "needs to be unset"));
  if (number_in(event, "count").value_or(0) != 0)
    errors.push_back(model::invalid("count", "\"\"", "needs to be unset"));
  const JsonObject& source = as_object(event.if_contains("source"));
  if (!is_unset(source, "component") || !is_unset(source, "host"))
    errors.push_back(model::invalid("source", "\"\"", "needs to be unset"));
}

void check_new_event_update(Errors& errors, const Json& next, const Json& old) {
  const Json* series = model::find(next, {"series"});
  const Json* before = model::find(old, {"series"});
  if (series && (!before || !model::is_same(*series, *before)))
    check_series(errors, as_object(next));
  for (const std::string_view name :
       {"involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count",
        "type", "eventTime", "action", "related", "reportingInstance"})
    check_immutable(errors, next, old, {name}, std::string(name));
  check_immutable(errors, next, old, {"reportingComponent"}, "reportingController");
}

class CoreEventStrategy : public PlainStrategy {
 public:
  void fill_in(Json& object) const override {
    fill_in_core_event(model::make_object_at(object, {}));
  }
  std::vector<model::FieldError> validate(const Json& next, const Json*,
                                          std::string_view) const override {
    Errors errors;
    check_event(errors, as_object(next), "reportingComponent");
    return errors.take();
  }
};

class EventStrategy : public PlainStrategy {
 public:
  std::vector<model::FieldError> validate(const Json& next, const Json* old,
                                          std::string_view) const override {
    Errors errors;
    Json core = next;
    to_core(core);
    check_event(errors, as_object(core), "reportingController");
    if (old) {
      Json before = *old;
      to_core(before);
      check_new_event_update(errors, core, before);
    } else {
      check_new_event(errors, as_object(core));
    }
    return errors.take();
  }
  void to_storage(Json& object) const override { to_core(object); }
  void from_storage(Json& object) const override { from_core(object); }
};

class LeaseStrategy : public Strategy {
 public:
  std::vector<model::FieldError> validate(const Json& next, const Json*,
                                          std::string_view) const override {
    Errors errors;
    const JsonObject& spec = as_object(model::find(next, {"spec"}));
    const auto seconds = number_in(spec, "leaseDurationSeconds");
    if (seconds && *seconds <= 0)
      errors.push_back(model::invalid("spec.leaseDurationSeconds", std::to_string(*seconds),
                                      "must be greater than 0"));
    check_not_negative(errors, spec, "leaseTransitions", "spec.leaseTransitions");
    if (!is_unset(spec, "preferredHolder") && is_unset(spec, "strategy"))
      errors.push_back(model::forbidden("spec.preferredHolder",
                                        "may only be specified if `strategy` is defined"));
    return errors.take();
  }
  bool has_generation() const override { return false; }
};

}  // namespace

const Strategy& core_event_strategy() {
  static const CoreEventStrategy kStrategy;
  return kStrategy;
}

const Strategy& event_strategy() {
  static const EventStrategy kStrategy;
  return kStrategy;
}

const Strategy& lease_strategy() {
  static const LeaseStrategy kStrategy;
  return kStrategy;
}

}  // namespace hearth::apiserver
