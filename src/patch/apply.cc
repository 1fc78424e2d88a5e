// Server-side apply: a configuration merged into an object, with owners of fields as judges.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "patch/patch_internal.h"
#include "patch/record_internal.h"
#include "patch/typed_internal.h"

namespace hearth::patch {
namespace {

using model::JsonObject;

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
// The one manager that used to apply on the client's side.
constexpr std::string_view kKubectl = "kubectl";
constexpr std::string_view kBeforeFirstApply = "before-first-apply";

// "agents.x-k8s.io/v1beta1, Kind=Sandbox"; the core group is empty.
std::string kind_text(const Json& object) {
  std::string version(model::text_at(object, {"apiVersion"}));
  if (version.find('/') == std::string::npos) version.insert(0, 1, '/');
  return fmt::format("{}, Kind={}", version, model::text_at(object, {"kind"}));
}

std::string name_text(const Json& object) {
  return fmt::format("{}/{}; {}", model::text_at(object, {"metadata", "namespace"}),
                     model::text_at(object, {"metadata", "name"}), kind_text(object));
}

void check_configuration(const Json& configuration, const Schema& schema, const Manager& manager) {
  if (model::text_at(configuration, {"apiVersion"}) != manager.api_version)
    model::throw_bad_request("invalid object type: " + kind_text(configuration));
  const Json* managed = model::find(configuration, {"metadata", "managedFields"});
  if (managed && !managed->is_null())
    model::throw_bad_request("metadata.managedFields must be nil");
  const std::vector<std::string> errors = find_type_errors(configuration, schema);
  if (errors.empty()) return;
  std::string text = errors.size() == 1 ? errors[0] : "errors:";
  if (errors.size() > 1)
    for (const std::string& error : errors) text += "\n  " + error;
  throw_plain_error(
      fmt::format("failed to create typed patch object ({}): {}", name_text(configuration), text));
}

struct Conflict {
  const Owner* owner = nullptr;
  FieldSet fields;
};

std::string owner_text(const Owner& owner) {
  std::string text = model::to_text(Json(owner.manager));
  if (!owner.subresource.empty())
    text += " with subresource " + model::to_text(Json(owner.subresource));
  if (!owner.is_apply) text += " using " + owner.api_version;
  return text;
}

[[noreturn]] void throw_conflicts(std::vector<Conflict> conflicts) {
  std::sort(conflicts.begin(), conflicts.end(), [](const Conflict& left, const Conflict& right) {
    return left.owner->manager < right.owner->manager;
  });
  model::Status status;
  status.code = 409;
  status.reason = "Conflict";
  std::string list;
  for (const Conflict& conflict : conflicts) {
    const std::string owner = owner_text(*conflict.owner);
    list += fmt::format("{}conflicts with {}:", list.empty() ? "" : "\n", owner);
    for_each_path(conflict.fields, [&](const std::string& path) {
      status.causes.push_back({"FieldManagerConflict", "conflict with " + owner, path});
      list += "\n- " + path;
    });
  }
  if (status.causes.size() == 1)
    status.message = fmt::format("Apply failed with 1 conflict: {}: {}", status.causes[0].message,
                                 status.causes[0].field);
  else
    status.message = fmt::format("Apply failed with {} conflicts: {}", status.causes.size(), list);
  throw model::StatusError(std::move(status));
}

class Application {
 public:
  Application(const Json& live, const Json& configuration, const Schema& schema,
              const Manager& manager)
      : live_(live), configuration_(configuration), schema_(schema), manager_(manager) {}

  Applied run(Owners owners, bool force) const {
    Owner own = make_owner(manager_, /*is_apply=*/true);
    own.own(fields_of(configuration_, schema_));
    const Owner* earlier = find_owner(owners, own);
    const Owner last = earlier ? *earlier : Owner();
    std::erase_if(owners, [&](const Owner& owner) { return owner.is_same_owner(own); });

    Json result = merge(live_, configuration_, schema_);
    if (last.fields) result = without_dropped(result, last.set(), managed_by_all(owners, own));
    settle(owners, compare(live_, result, schema_), force);
    // Who changed nothing keeps the time of the last change.
    if (!last.time.empty() && model::is_same(live_, result)) {
      own.time = last.time;
      own.seconds = last.seconds;
    }
    owners.push_back(std::move(own));
    drop_empty(owners);
    sort(owners);
    return {std::move(result), std::move(owners)};
  }

 private:
  static FieldSet managed_by_all(const Owners& owners, const Owner& own) {
    FieldSet all = own.set();
    for (const Owner& owner : owners) all = unite(std::move(all), owner.set());
    return all;
  }

  FieldSet parts_of(const Json& object) const {
    return with_declared_parents(fields_of(object, schema_), schema_);
  }

  // Without what this manager applied earlier and names no longer. What others own comes back, and
  // so does what nobody owned but went with its parent.
  Json without_dropped(const Json& merged, const FieldSet& last, const FieldSet& managed) const {
    const FieldSet before = with_declared_parents(last, schema_);
    const FieldSet all = parts_of(merged);
    const FieldSet left = parts_of(remove_fields(merged, before, schema_));
    const FieldSet kept = unite(left, with_declared_parents(managed, schema_));
    const FieldSet owned = parts_of(remove_fields(merged, subtract(all, kept), schema_));
    return remove_fields(merged, intersect(subtract(all, owned), before), schema_);
  }

  // Others lose what changed; not without their consent, unless forced.
  void settle(Owners& owners, const Changes& changes, bool force) const {
    std::vector<Conflict> conflicts;
    for (const Owner& owner : owners)
      if (FieldSet both = intersect(owner.set(), changes.set); !both.empty())
        conflicts.push_back({&owner, std::move(both)});
    if (!force && !conflicts.empty()) check_consent(std::move(conflicts));
    for (Owner& owner : owners) take_away(owner, changes);
    drop_empty(owners);
  }

  // kubectl may take back what it applied on its own side, which the annotation tells.
  void check_consent(std::vector<Conflict> conflicts) const {
    if (manager_.name == kKubectl) {
      if (const auto allowed = fields_applied_by_client()) {
        for (Conflict& conflict : conflicts)
          conflict.fields = subtract(std::move(conflict.fields), *allowed);
        std::erase_if(conflicts, [](const Conflict& c) { return c.fields.empty(); });
      }
    }
    if (!conflicts.empty()) throw_conflicts(std::move(conflicts));
  }

  std::optional<FieldSet> fields_applied_by_client() const {
    const std::string_view text = model::text_at(live_, {"metadata", "annotations", kLastApplied});
    if (text.empty()) return std::nullopt;
    try {
      const Json applied = model::parse_json(text).value;
      if (model::text_at(applied, {"apiVersion"}) != manager_.api_version) return std::nullopt;
      const Changes since = compare(applied, live_, schema_);
      return subtract(subtract(fields_of(applied, schema_), since.set), since.removed);
    } catch (const Error&) {  // the annotation is anybody's text
      return std::nullopt;
    }
  }

  const Json& live_;
  const Json& configuration_;
  const Schema& schema_;
  const Manager& manager_;
};

// A client that goes back to applying on its own side must find what was applied last.
void renew_last_applied(Json& object, const Json& configuration) {
  if (model::text_at(object, {"metadata", "annotations", kLastApplied}).empty()) return;
  Json applied = configuration;
  model::erase_at(applied, {"metadata", "annotations", kLastApplied});
  model::make_object_at(object, {"metadata", "annotations"})[kLastApplied] =
      model::to_text(applied) + "\n";
}

}  // namespace

Applied apply(const Owned* live, const Json& configuration, const schema::Schema& schema,
              const Manager& manager, bool force) {
  check_configuration(configuration, schema, manager);
  const Json nothing = JsonObject();
  Owners owners = live ? live->owners : Owners();
  try {
    if (live && owners.empty()) {
      Manager first = manager;
      first.name = kBeforeFirstApply;
      record_changes(owners, compare(empty_object(schema), live->object, schema), first);
    }
    Applied applied = Application(live ? live->object : nothing, configuration, schema, manager)
                          .run(std::move(owners), force);
    if (manager.name == kKubectl) renew_last_applied(applied.object, configuration);
    return applied;
  } catch (const model::StatusError&) {
    throw;
  } catch (const Error& error) {
    throw_plain_error(fmt::format("failed to merge config: {}", error.what()));
  }
}

}  // namespace hearth::patch
