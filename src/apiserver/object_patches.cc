#include <fmt/format.h>

#include "apiserver/kept.h"
#include "apiserver/object_meta.h"
#include "apiserver/objects_internal.h"
#include "apiserver/strategy.h"
#include "model/json_path.h"
#include "model/scratch.h"
#include "patch/managed_fields.h"
#include "patch/patch.h"

namespace hearth::apiserver {
namespace {

void check_applied_type(const Resource& resource, const Json& configuration) {
  const std::string_view api_version = model::text_at(configuration, {"apiVersion"});
  const std::string_view kind = model::text_at(configuration, {"kind"});
  if (api_version.empty() || kind.empty()) {
    const std::size_t slash = api_version.find('/');
    const std::string_view group =
        slash == std::string_view::npos ? "" : api_version.substr(0, slash);
    const std::string_view version =
        slash == std::string_view::npos ? api_version : api_version.substr(slash + 1);
    model::throw_bad_request(
        fmt::format("invalid object type: {}/{}, Kind={}", group, version, kind));
  }
  if (api_version != resource.api_version() || kind != resource.kind)
    model::throw_bad_request(
        fmt::format("incorrect type specified in patch: got {}, Kind={}, want {}, Kind={}",
                    api_version, kind, resource.api_version(), resource.kind));
}

// What this endpoint does not write is nobody's to own by it.
Json without_what_is_reset(Json configuration, const Resource& resource,
                           std::string_view subresource) {
  if (!configuration.is_object()) return configuration;
  if (subresource.empty() && resource.has_status) configuration.as_object().erase("status");
  if (subresource == "status") configuration.as_object().erase("spec");
  return configuration;
}

}  // namespace

Written Objects::patch(const Place& place, PatchKind kind, const Json& patch,
                       std::string_view subresource, const WriteOptions& options,
                       const std::vector<std::string>& duplicates) {
  if (kind == PatchKind::apply) {
    check_applied_type(place.resource, patch);
    if (!store_.find(key_of(place))) {
      if (!subresource.empty()) model::throw_not_found(place.resource.group_resource(), place.name);
      return apply(place, patch, subresource, options);
    }
  }
  return edit(place, subresource, options, [&](const Seen& seen, Change& change) {
    const Json& old = *seen.object;
    change.problems.duplicates = duplicates;
    change.patch = &patch;
    // Revisions are compared only if the patch itself brings one.
    change.revision_is_copied =
        kind != PatchKind::json && model::text_at(patch, {"metadata", "resourceVersion"}).empty();
    // Not in the Scratch: most of it stays, as the object's tree.
    Json next(old, model::Storage());
    if (kind == PatchKind::json || model::find(patch, {"metadata", "managedFields"}))
      put_managed_fields(next, *seen.owners);
    switch (kind) {
      case PatchKind::json: {
        patch::apply_json_patch(next, patch);
        change.revision_is_copied = revision_of(next) == revision_of(old);
        break;
      }
      case PatchKind::merge:
        patch::apply_merge_patch(next, patch);
        // Built-in kinds have rules of their own, which may change more than the patch names.
        if (seen.is_checked && !place.resource.built_in) change.touched = model::Touched(patch);
        break;
      case PatchKind::strategic:
        patch::apply_strategic_patch(next, patch, *place.resource.schema);
        break;
      case PatchKind::apply: {
        const patch::Owned live{old, *seen.owners};
        patch::Applied applied = patch::apply(
            &live, without_what_is_reset(patch, place.resource, subresource),
            *place.resource.schema,
            {options.manager, std::string(subresource), place.resource.api_version(), clock_.now()},
            options.force);
        next = std::move(applied.object);
        change.applied = std::move(applied.owners);
        if (!change.revision_is_copied)
          model::make_object_at(next, {"metadata"})["resourceVersion"] = revision_of(patch);
        break;
      }
    }
    return next;
  });
}

// An apply to an object that is not there creates it.
Written Objects::apply(const Place& place, const Json& configuration, std::string_view subresource,
                       const WriteOptions& options) {
  const Resource& resource = place.resource;
  if (!uid_of(configuration).empty() || !revision_of(configuration).empty())
    model::throw_conflict(
        resource.group_resource(), place.name,
        "uid mismatch: the provided object specified a uid or a resourceVersion, and no "
        "existing object was found");
  patch::Applied applied = patch::apply(
      nullptr, without_what_is_reset(configuration, resource, subresource), *resource.schema,
      {options.manager, std::string(subresource), resource.api_version(), clock_.now()},
      options.force);
  Json& object = applied.object;
  check_place(place, object);
  try {
    return make(place, {std::move(object), {}}, options, std::move(applied.owners));
  } catch (const model::StatusError& error) {
    if (error.status().reason != "AlreadyExists") throw;
    return patch(place, PatchKind::apply, configuration, subresource, options);
  }
}

Json Objects::scale(const Place& place) const {
  const store::ObjectPtr kept = get(place);
  const JsonPtr seen = look(*kept, place.resource);
  const Json& object = *seen;
  const ScalePaths& paths = *place.resource.scale;
  model::JsonObject metadata;
  for (const char* name : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"})
    if (const Json* value = model::find(object, {"metadata", name})) metadata[name] = *value;
  const auto replicas = [&](const std::string& path) -> std::int64_t {
    const Json* found = model::JsonPath::parse(path).find_first(object);
    return found ? model::as_integer(*found).value_or(0) : 0;
  };
  model::JsonObject status;
  status["replicas"] = replicas(paths.status_replicas);
  if (!paths.label_selector.empty())
    if (const Json* selector = model::JsonPath::parse(paths.label_selector).find_first(object);
        selector && selector->is_string() && !selector->get_string().empty())
      status["selector"] = *selector;
  model::JsonObject spec;
  if (const std::int64_t wanted = replicas(paths.spec_replicas); wanted != 0)
    spec["replicas"] = wanted;
  model::JsonObject scale;
  scale["kind"] = "Scale";
  scale["apiVersion"] = "autoscaling/v1";
  scale["metadata"] = std::move(metadata);
  scale["spec"] = std::move(spec);
  scale["status"] = std::move(status);
  return scale;
}

Json Objects::set_scale(const Place& place, const std::function<void(Json& scale)>& change_scale,
                        const WriteOptions& options) {
  const ScalePaths& paths = *place.resource.scale;
  WriteOptions main_options = options;
  main_options.validation = FieldValidation::ignore;
  edit(place, "", main_options, [&](const Seen& old, Change& change) {
    Json scaled = scale(place);
    const std::string before(revision_of(scaled));
    change_scale(scaled);
    check_place(place, scaled);
    const Json* asked = model::find(scaled, {"spec", "replicas"});
    if (asked && !asked->is_null() && !model::as_integer(*asked))
      model::throw_invalid(
          {"autoscaling", "Scale"}, place.name,
          {model::invalid("spec.replicas", model::to_text(*asked), "must be an integer")});
    const auto replicas = model::number_at(scaled, {"spec", "replicas"}).value_or(0);
    Json next = *old.object;
    model::JsonPath::parse(paths.spec_replicas).set(next, replicas);
    const std::string wanted(revision_of(scaled));
    change.revision_is_copied = wanted.empty() || wanted == before;
    if (!change.revision_is_copied)
      model::make_object_at(next, {"metadata"})["resourceVersion"] = wanted;
    return next;
  });
  return scale(place);
}

}  // namespace hearth::apiserver
