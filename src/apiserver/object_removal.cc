#include <fmt/format.h>

#include "apiserver/kept.h"
#include "apiserver/object_meta.h"
#include "apiserver/objects_internal.h"
#include "apiserver/strategy.h"
#include "model/scratch.h"

namespace hearth::apiserver {
namespace {

// Pods are given this long unless someone says otherwise.
constexpr std::int64_t kPodGraceSeconds = 30;

void check_preconditions(const Place& place, const Json& object, const DeleteOptions& options) {
  const model::GroupResource by_kind{place.resource.group, place.resource.kind};
  if (options.uid && *options.uid != uid_of(object))
    model::throw_conflict(
        by_kind, place.name,
        fmt::format("the UID in the precondition ({}) does not match the UID in record "
                    "({}). The object might have been deleted and then recreated",
                    *options.uid, uid_of(object)));
  if (options.resource_version && *options.resource_version != revision_of(object))
    model::throw_conflict(
        by_kind, place.name,
        fmt::format("the ResourceVersion in the precondition ({}) does not match the "
                    "ResourceVersion in record ({}). The object might have been modified",
                    *options.resource_version, revision_of(object)));
}

// How long the object may go on; 0: no time at all.
std::int64_t grace_of(const Place& place, const Json& object, const DeleteOptions& options) {
  if (place.resource.store_name != "pods") return 0;
  // Nobody runs it yet, or it has ended: there is nothing to wait for.
  if (model::text_at(object, {"spec", "nodeName"}).empty()) return 0;
  const std::string_view phase = model::text_at(object, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed") return 0;
  if (options.grace_seconds) return *options.grace_seconds;
  return model::number_at(object, {"spec", "terminationGracePeriodSeconds"})
      .value_or(kPodGraceSeconds);
}

// True if something changed.
bool begin_deletion(const Place& place, Json& object, std::int64_t grace, Time now) {
  const bool counts = place.resource.strategy->has_generation();
  if (!is_deleting(object)) {
    mark_deleting(object, now, grace, counts);
    if (place.resource.store_name == "namespaces") {
      model::make_object_at(object, {"status"})["phase"] = "Terminating";
      model::erase_at(object, {"metadata", "deletionGracePeriodSeconds"});
    }
    return true;
  }
  const auto before =
      model::number_at(object, {"metadata", "deletionGracePeriodSeconds"}).value_or(0);
  if (place.resource.store_name != "pods" || grace >= before) return false;
  mark_deleting(object, now, grace, /*has_generation=*/false);
  return true;
}

bool has_finalizers(const Json& object, const Resource& resource) {
  if (!finalizers_of(object).empty()) return true;
  const model::JsonArray* of_namespace = resource.store_name == "namespaces"
                                             ? model::array_at(object, {"spec", "finalizers"})
                                             : nullptr;
  return of_namespace && !of_namespace->empty();
}

void note_propagation(Json& object, const std::string& propagation) {
  if (propagation == "Foreground") {
    add_finalizer(object, "foregroundDeletion");
    remove_finalizer(object, "orphan");
  } else if (propagation == "Orphan") {
    add_finalizer(object, "orphan");
    remove_finalizer(object, "foregroundDeletion");
  } else if (propagation == "Background") {
    remove_finalizer(object, "orphan");
    remove_finalizer(object, "foregroundDeletion");
  }
}

void check_protected(const Place& place) {
  if (place.resource.store_name != "namespaces") return;
  if (place.name == "default" || place.name == "kube-system" || place.name == "kube-public")
    model::throw_forbidden(place.resource.group_resource(), place.name,
                           "this namespace may not be deleted");
}

}  // namespace

Deleted Objects::remove(const Place& place, const DeleteOptions& options) {
  check_protected(place);
  while (true) {
    const store::ObjectPtr kept = get(place);
    model::Scratch scratch;
    const Seen seen = see(*kept, place.resource, scratch.storage());
    Json object(*seen.object, scratch.storage());
    check_preconditions(place, object, options);

    const std::int64_t grace = grace_of(place, object, options);
    const bool was_deleting = is_deleting(object);
    if (!was_deleting) note_propagation(object, options.propagation);
    const bool changed = begin_deletion(place, object, grace, clock_.now());
    const bool stays =
        has_finalizers(object, place.resource) ||
        model::number_at(object, {"metadata", "deletionGracePeriodSeconds"}).value_or(0) > 0;

    Deleted deleted{.gone = !stays, .uid = std::string(uid_of(object)), .text = {}};
    if (options.dry_run || (stays && !changed)) {
      deleted.text = options.dry_run && deleted.gone ? view_text(*kept, place.resource)
                                                     : render(object, *seen.owners);
      return deleted;
    }
    // What vanishes at once was never seen on its way out.
    const bool at_once = !stays && !was_deleting;
    store::Write write = make_write(
        place.resource, at_once ? Json(*seen.object, scratch.storage()) : std::move(object),
        *seen.owners, kept->revision);
    write.remove = !stays;
    if (store::Outcome outcome = write_to(store_, std::move(write)); outcome.kept) {
      deleted.text = view_text(*outcome.object, place.resource);
      return deleted;
    }
    if (options.resource_version)
      model::throw_modified(place.resource.group_resource(), place.name);
  }
}

}  // namespace hearth::apiserver
