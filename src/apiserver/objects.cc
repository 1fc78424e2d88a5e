#include "apiserver/objects.h"

#include <algorithm>
#include <random>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apiserver/cluster_ip.h"
#include "apiserver/kept.h"
#include "apiserver/kinds_strategies_internal.h"
#include "apiserver/object_meta.h"
#include "apiserver/objects_internal.h"
#include "apiserver/strategy.h"
#include "base/time_text.h"
#include "model/names.h"
#include "model/scratch.h"
#include "patch/managed_fields.h"

namespace hearth::apiserver {
namespace {

using model::FieldError;
using model::Touched;

// Generated names that are taken already are replaced by others; with 24 million suffixes even a
// namespace of a million objects finds one.
constexpr int kNameAttempts = 8;
// A patch that races with others is made again on top of what they wrote.
constexpr int kEditAttempts = 64;
// Longer ones would take too much memory while their trees are about.
constexpr std::size_t kLongestWithTree = 32 << 10;

std::string strict_problems(const BodyProblems& problems) {
  std::vector<std::string> sentences;
  for (const std::string& path : problems.duplicates)
    sentences.push_back(fmt::format("duplicate field \"{}\"", path));
  for (const std::string& path : problems.unknown)
    sentences.push_back(fmt::format("unknown field \"{}\"", path));
  return fmt::format("{}", fmt::join(sentences, ", "));
}

// What only the server may write comes from the object that is there.
void carry_over(Json& next, const Json& old) {
  model::JsonObject& metadata = model::make_object_at(next, {"metadata"});
  const model::JsonObject* before = model::object_at(old, {"metadata"});
  for (const std::string_view name :
       {"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
        "name", "namespace", "generateName", "selfLink"}) {
    const Json* value = before ? before->if_contains(name) : nullptr;
    if (name == "generateName" && metadata.contains(name)) continue;
    if (value)
      metadata[name] = *value;
    else
      metadata.erase(name);
  }
}

// Everything but metadata and status: what a change of generation is about.
bool has_same_intent(const Json& left, const Json& right, Touched touched) {
  const model::JsonObject& a = left.get_object();
  const model::JsonObject& b = right.get_object();
  const auto is_same_in_both = [&](const auto& member) {
    const std::string_view name = member.key();
    if (name == "metadata" || name == "status") return true;
    const auto below = touched.member(name);
    const Json* one = a.if_contains(name);
    const Json* other = b.if_contains(name);
    if (!below || !one || !other) return !below || one == other;
    return model::is_same_where(*below, *one, *other);
  };
  return std::all_of(a.begin(), a.end(), is_same_in_both) &&
         std::all_of(b.begin(), b.end(), is_same_in_both);
}

// Leaves of `next` only what the subresource is about; everything else is as it was.
void keep_only_subresource(Json& next, const Json& old, std::string_view subresource,
                           Touched touched) {
  const bool is_of_spec = subresource == "finalize" || subresource == "ephemeralcontainers";
  const std::string_view member = is_of_spec ? "spec" : subresource;
  model::JsonObject& object = next.as_object();
  const model::JsonObject& before = old.get_object();
  std::vector<std::string> added;
  for (const auto& each : object)
    if (each.key() != member && !before.contains(each.key())) added.emplace_back(each.key());
  for (const std::string& name : added) object.erase(name);
  for (const auto& [name, value] : before)
    if (name != member && touched.member(name)) object[name] = value;
  if (subresource == "ephemeralcontainers")
    keep_only_ephemeral_containers(model::make_object_at(next, {"spec"}),
                                   as_object(before.if_contains("spec")));
}

// The managedFields that a client sent, no longer in the object.
std::optional<Json> take_managed_fields(Json& object) {
  Json* found = model::find(object, {"metadata", "managedFields"});
  if (!found) return std::nullopt;
  std::optional<Json> sent = std::move(*found);
  model::erase_at(object, {"metadata", "managedFields"});
  return sent;
}

model::MetaRules meta_rules(const Resource& resource) {
  model::MetaRules rules{
      .namespaced = resource.namespaced,
      .name = model::NameRule::subdomain,
      .is_built_in = resource.built_in && resource.group != "apiextensions.k8s.io"};
  if (resource.store_name == "namespaces" || resource.store_name == "services")
    rules.name = model::NameRule::label;
  if (resource.group == "rbac.authorization.k8s.io") rules.name = model::NameRule::path_segment;
  return rules;
}

// An empty list or map in metadata says nothing, and the real server does not keep it.
void drop_empty_metadata(Json& object) {
  Json* metadata = model::find(object, {"metadata"});
  if (!metadata || !metadata->is_object()) return;
  for (const char* name : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    const Json* value = metadata->get_object().if_contains(name);
    if (!value) continue;
    const bool is_empty = (value->is_object() && value->get_object().empty()) ||
                          (value->is_array() && value->get_array().empty());
    if (is_empty) metadata->get_object().erase(name);
  }
}

// Whether nothing holds back an object that is being deleted any more.
bool may_vanish(const Json& object) {
  if (!is_deleting(object) || !finalizers_of(object).empty()) return false;
  const model::JsonArray* of_namespace = model::text_at(object, {"kind"}) == "Namespace"
                                             ? model::array_at(object, {"spec", "finalizers"})
                                             : nullptr;
  if (of_namespace && !of_namespace->empty()) return false;
  return model::number_at(object, {"metadata", "deletionGracePeriodSeconds"}).value_or(0) == 0;
}

// Whether something is missing before the schema is looked at, and the schema has not said that
// its rules had to wait for it.
bool lacks_metadata(const std::vector<FieldError>& errors) {
  const auto is_missing = [](const FieldError& error) {
    return error.problem == model::FieldProblem::required && error.field.starts_with("metadata");
  };
  return std::ranges::any_of(errors, is_missing) &&
         std::ranges::none_of(errors, [](const FieldError& e) { return e.field == "<nil>"; });
}

// Records who owns what of a new object. Its state is the server's, not its maker's.
patch::Owners record_creation(Json& object, const Json* sent, const Resource& resource,
                              const patch::Manager& maker) {
  std::optional<Json> status;
  if (Json* found = resource.has_status && resource.built_in && resource.store_name != "nodes"
                        ? model::find(object, {"status"})
                        : nullptr) {
    status = std::move(*found);
    object.as_object().erase("status");
  }
  patch::Owners owners =
      patch::record_update({.after = object, .sent = sent}, *resource.schema, maker);
  if (status) object.as_object()["status"] = std::move(*status);
  return owners;
}

}  // namespace

store::Key key_of(const Place& place) {
  return {place.resource.store_name, place.ns, place.name};
}

void rethrow_from_store(const Error& error) {
  if (error.code() != Code::exhausted) throw;
  throw model::StatusError({.code = 500,
                            .reason = "InternalError",
                            .message = fmt::format("Internal error occurred: no space is left "
                                                   "for objects: {}",
                                                   error.what())});
}

store::Outcome write_to(store::Store& store, store::Write write) {
  try {
    return store.write(std::move(write));
  } catch (const Error& error) {
    rethrow_from_store(error);
  }
}

store::ObjectPtr Objects::get(const Place& place) const {
  store::ObjectPtr found = store_.find(key_of(place));
  if (!found) model::throw_not_found(place.resource.group_resource(), place.name);
  return found;
}

void Objects::check_namespace(const Place& place) const {
  if (!place.resource.namespaced) return;
  const model::GroupResource namespaces{"", "namespaces"};
  const store::ObjectPtr found = store_.find({"namespaces", "", place.ns});
  if (!found) model::throw_not_found(namespaces, place.ns);
  // The field is kept with the object, so that creates need not read its text.
  if (found->tags.find("\x01status.phase") != "Terminating") return;
  model::Status status{.code = 403, .reason = "Forbidden"};
  status.name = place.name;
  status.group = place.resource.group;
  status.kind = place.resource.plural;
  status.message = fmt::format(
      "{} \"{}\" is forbidden: unable to create new content in namespace {} because it is being "
      "terminated",
      place.resource.group_resource().text(), place.name, place.ns);
  status.causes.push_back({"NamespaceTerminating",
                           fmt::format("namespace {} is being terminated", place.ns),
                           "metadata.namespace"});
  throw model::StatusError(std::move(status));
}

// Prunes, defaults and validates `object`, which has the resource's shape.
void Objects::check(Json& object, const Json* old, Change& change) const {
  const Resource& resource = change.resource;
  schema::prune(object, *resource.schema, &change.problems.unknown, change.touched);
  change.refuse_or_warn();
  if (resource.built_in) schema::drop_zero_values(object, *resource.schema);
  drop_empty_metadata(object);
  drop_repeated_owners(object, change.warnings);
  schema::apply_defaults(object, *resource.schema, change.touched);
  resource.strategy->fill_in(object);

  std::vector<FieldError> errors;
  if (change.touched.member("metadata"))
    errors = model::validate_object_meta(object, meta_rules(resource));
  if (old && is_deleting(*old))
    for (FieldError& error : model::validate_new_finalizers(object, *old))
      errors.push_back(std::move(error));
  for (FieldError& error : schema::validate(object, *resource.schema, old, change.touched)) {
    // Those who report the state of built-in kinds may leave things out. Which of their lists may
    // not repeat a key is the strategy's to say: environment variables may. What metadata must have
    // was looked at above.
    const bool is_lenient =
        (resource.built_in &&
         (error.problem == model::FieldProblem::duplicate ||
          (error.problem == model::FieldProblem::required && error.field.starts_with("status")))) ||
        (error.field.starts_with("metadata.") && (error.problem == model::FieldProblem::duplicate ||
                                                  error.problem == model::FieldProblem::required));
    // Such a body cannot be read at all where kinds are types of a program.
    if (resource.built_in && error.problem == model::FieldProblem::type_invalid && !change.patch)
      model::throw_bad_request(
          fmt::format("{0} in version \"{1}\" cannot be handled as a {0}: {2}: {3}", resource.kind,
                      resource.version, error.field, error.detail));
    if (!is_lenient) errors.push_back(std::move(error));
  }
  // A strategy knows its kind better than the schema, which may have said the same.
  std::vector<FieldError> known = resource.strategy->validate(object, old, change.subresource);
  std::erase_if(errors, [&](const FieldError& said) {
    return std::ranges::any_of(known, [&](const FieldError& better) {
      return said.field == better.field && said.problem == better.problem;
    });
  });
  for (FieldError& error : known) errors.push_back(std::move(error));
  if (errors.empty()) return;
  if (!resource.built_in && resource.schema->has_rules && lacks_metadata(errors))
    errors.push_back(model::invalid("<nil>", "null",
                                    "some validation rules were not checked because the object was "
                                    "invalid; correct the existing errors to complete validation"));
  model::throw_invalid(resource.group_kind(), name_of(object), errors);
}

void Objects::Change::refuse_or_warn() {
  if (options.validation == FieldValidation::ignore || problems.empty()) return;
  if (options.validation == FieldValidation::warn) {
    for (const std::string& path : problems.duplicates)
      warnings.push_back(fmt::format("duplicate field \"{}\"", path));
    for (const std::string& path : problems.unknown)
      warnings.push_back(fmt::format("unknown field \"{}\"", path));
    problems = {};
    return;
  }
  const std::string what = "strict decoding error: " + strict_problems(problems);
  if (!patch)
    model::throw_bad_request(fmt::format("{0} in version \"{1}\" cannot be handled as a {0}: {2}",
                                         resource.kind, resource.version, what));
  model::throw_invalid(resource.group_kind(), name,
                       {model::invalid("patch", model::to_text(*patch), what)});
}

store::Write Objects::make_write(const Resource& resource, Json object, patch::Owners owners,
                                 store::Revision expected) {
  const CataloguePtr catalogue = catalogue_();
  const ResourcePtr storage = catalogue->storage(resource.store_name);
  if (!storage) model::throw_not_found(resource.group_resource(), name_of(object));
  to_storage(resource, object);
  store::Write write;
  write.key = {resource.store_name, std::string(namespace_of(object)),
               std::string(name_of(object))};
  write.expected = expected;
  KeptText kept = render_kept(object, owners);
  write.text = std::move(kept.text);
  write.hole = kept.hole;
  write.tags = tags_of(object, *storage);
  write.durability = durability_of(resource);
  if (write.text.size() <= kLongestWithTree) {
    const bool is_converted = storage->schema != resource.schema;
    const auto tree = std::make_shared<Tree>(std::move(object), std::move(owners),
                                             is_converted ? nullptr : resource.schema);
    recent_trees_.keep(tree, std::chrono::steady_clock::now());
    write.companion = tree;
  }
  return write;
}

void Objects::allocate_cluster_ip(Json& service) const {
  const bool is_chosen = is_cluster_ip_chosen(service);
  if (!is_chosen && !needs_cluster_ip(service)) return;
  std::set<std::string, std::less<>> used;
  store::ListQuery query;
  query.resource = "services";
  for (const store::ObjectPtr& other : store_.list(query).objects)
    used.emplace(other->tags.find("\x01spec.clusterIP").value_or(""));
  if (is_chosen) return check_chosen_cluster_ip(service, used);
  static thread_local std::minstd_rand random{std::random_device{}()};
  const auto free = pick_cluster_ip(used, static_cast<std::uint32_t>(random()));
  if (!free) fail(Code::exhausted, "no cluster IP is left in {}", kClusterIpRange);
  set_cluster_ip(service, *free);
}

Written Objects::create(const Place& place, model::ParsedJson body, const WriteOptions& options) {
  return make(place, std::move(body), options, std::nullopt);
}

// `applied`: who owns what, if that is settled already.
Written Objects::make(const Place& place, model::ParsedJson body, const WriteOptions& options,
                      std::optional<patch::Owners> applied) {
  const Resource& resource = place.resource;
  Change change{.resource = resource, .options = options, .name = std::string(name_of(body.value))};
  change.problems.duplicates = std::move(body.duplicates);
  Json& object = body.value;
  if (!revision_of(object).empty())
    throw model::StatusError(
        {.code = 500,
         .reason = "",
         .message = "resourceVersion should not be set on objects to be created"});

  model::JsonObject& metadata = model::make_object_at(object, {"metadata"});
  const std::string prefix(model::text_at(object, {"metadata", "generateName"}));
  const bool generates = name_of(object).empty() && !prefix.empty();
  if (generates) metadata["name"] = model::generate_name(prefix);
  if (resource.namespaced) {
    metadata["namespace"] = place.ns;
    check_namespace({resource, place.ns, std::string(name_of(object))});
  }
  const Time now = clock_.now();
  for (const char* name :
       {"resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"})
    metadata.erase(name);
  metadata["uid"] = new_uid();
  metadata["creationTimestamp"] = format_rfc3339(now);
  metadata.erase("generation");
  if (resource.strategy->has_generation()) metadata["generation"] = 1;
  // A node reports itself, state and all; nobody else's state begins with what a client says.
  if (resource.has_status && resource.store_name != "nodes") object.as_object().erase("status");
  const std::optional<Json> sent = take_managed_fields(object);
  resource.strategy->fill_in(object);
  resource.strategy->prepare_create(object);
  check(object, nullptr, change);
  if (options.approve) options.approve(object, nullptr);
  if (resource.store_name == "services") allocate_cluster_ip(object);
  if (!resource.built_in) warn_of_finalizers(object, nullptr, change.warnings);
  const patch::Owners owners =
      applied ? *std::move(applied)
              : record_creation(object, sent ? &*sent : nullptr, resource,
                                {options.manager, "", resource.api_version(), now});

  std::string name(name_of(object));
  if (options.dry_run) {
    if (store_.find({resource.store_name, place.ns, name}))
      model::throw_already_exists(resource.group_resource(), name);
    return {nullptr, render(object, owners), true, std::move(change.warnings)};
  }
  if (auto kept = make_welcomed(place, object, owners, options))
    return {*std::move(kept), "", true, std::move(change.warnings)};
  const auto attempt = [&](Json candidate) {
    store::Write write = make_write(resource, std::move(candidate), owners, 0);
    if (options.durability) write.durability = *options.durability;
    const store::Outcome outcome = write_to(store_, std::move(write));
    return outcome.kept ? outcome.object : nullptr;
  };
  store::ObjectPtr kept;
  for (int left = kNameAttempts; generates && !kept && left > 0; --left) {
    if (left < kNameAttempts) metadata["name"] = name = model::generate_name(prefix);
    kept = attempt(object);
  }
  if (!generates) kept = attempt(std::move(object));
  if (!kept) model::throw_already_exists(resource.group_resource(), name);
  return {std::move(kept), "", true, std::move(change.warnings)};
}

// Stores `object` over `old`, or removes it if it was only waiting for this.
std::optional<Written> Objects::keep(const Place& place, Json object, patch::Owners owners,
                                     const store::Object& old, Change& change) {
  const Resource& resource = place.resource;
  if (change.options.dry_run)
    return Written{nullptr, render(object, owners), false, std::move(change.warnings)};
  const bool vanishes = may_vanish(object);
  Written written{.warnings = std::move(change.warnings)};
  // The last state is answered with the revision its reader knows.
  if (vanishes) {
    model::make_object_at(object, {"metadata"})["resourceVersion"] = std::to_string(old.revision);
    written.text = render(object, owners);
  }
  store::Write write = make_write(resource, std::move(object), std::move(owners), old.revision);
  write.remove = vanishes;
  write.news_can_wait = change.options.news_can_wait;
  if (change.options.staged) {
    *change.options.staged = std::move(write);
    return written;
  }
  store::Outcome outcome = write_to(store_, std::move(write));
  if (!outcome.kept) {
    change.warnings = std::move(written.warnings);
    return std::nullopt;
  }
  if (!vanishes) written.object = std::move(outcome.object);
  return written;
}

// Who owns what after a change of `seen` to `next`.
patch::Owners Objects::own(const Seen& seen, const Json& next, const Json* sent,
                           Change& change) const {
  if (change.applied) return *std::move(change.applied);
  const patch::Owned before{*seen.object, *seen.owners};
  return patch::record_update(
      {.before = &before, .after = next, .sent = sent, .touched = change.touched},
      *change.resource.schema,
      {change.options.manager, change.subresource, change.resource.api_version(), clock_.now()});
}

Written Objects::edit(const Place& place, std::string_view subresource, const WriteOptions& options,
                      const Edit& make) {
  const Resource& resource = place.resource;
  for (int attempt = 0; attempt < kEditAttempts; ++attempt) {
    const store::ObjectPtr kept = get(place);
    model::Scratch scratch;
    const Seen seen = see(*kept, resource, scratch.storage());
    const Json& old = *seen.object;
    Change change{.resource = resource,
                  .options = options,
                  .subresource = std::string(subresource),
                  .name = place.name,
                  .storage = scratch.storage()};
    Json next = make(seen, change);
    if (!next.is_object()) model::throw_bad_request("the object must be a JSON object");
    const std::optional<Json> sent = take_managed_fields(next);

    check_identity(place, subresource, change.is_put, old, next);
    const std::string wanted(revision_of(next));
    const bool conditional = !wanted.empty() && wanted != "0" && !change.revision_is_copied;
    if (conditional && wanted != std::to_string(kept->revision))
      model::throw_modified(resource.group_resource(), place.name);
    if ((wanted.empty() || wanted == "0") && change.is_put &&
        !resource.strategy->allows_unconditional_update())
      model::throw_invalid(
          {resource.group, resource.plural}, place.name,
          {model::invalid("metadata.resourceVersion", "0", "must be specified for an update")});

    if (!subresource.empty()) {
      schema::prune(next, *resource.schema, &change.problems.unknown, change.touched);
      change.refuse_or_warn();
      keep_only_subresource(next, old, subresource, change.touched);
    } else if (resource.has_status && !resource.built_in && change.touched.member("status")) {
      next.as_object().erase("status");
      if (const Json* status = model::find(old, {"status"})) next.as_object()["status"] = *status;
    }
    carry_over(next, old);
    if (subresource.empty()) resource.strategy->prepare_update(next, old);
    if (!options.is_checked || !seen.is_checked || resource.built_in) check(next, &old, change);
    if (options.approve) options.approve(next, &old);
    if (!resource.built_in) warn_of_finalizers(next, &old, change.warnings);
    patch::Owners owners = own(seen, next, sent ? &*sent : nullptr, change);
    model::make_object_at(next, {"metadata"})["resourceVersion"] = revision_of(old);
    if (owners == *seen.owners && model::is_same_where(change.touched, next, old))
      return {kept, "", false, std::move(change.warnings)};
    if (resource.strategy->has_generation() && subresource != "status" &&
        !has_same_intent(next, old, change.touched))
      grow_generation(next);

    if (auto written = keep(place, std::move(next), std::move(owners), *kept, change))
      return std::move(*written);
    if (conditional) model::throw_modified(resource.group_resource(), place.name);
  }
  model::throw_modified(resource.group_resource(), place.name);
}

Written Objects::update(const Place& place, const model::ParsedJson& body,
                        std::string_view subresource, const WriteOptions& options) {
  return edit(place, subresource, options, [&](const Seen&, Change& change) {
    change.is_put = true;
    change.problems.duplicates = body.duplicates;
    return body.value;
  });
}

void Objects::amend(const Place& place, const std::function<bool(Json& object)>& change) {
  const ResourcePtr storage = catalogue_()->storage(place.resource.store_name);
  if (!storage) return;
  for (int attempt = 0; attempt < kEditAttempts; ++attempt) {
    const store::ObjectPtr kept = store_.find(key_of(place));
    if (!kept) return;
    model::Scratch scratch;
    const Seen seen = see(*kept, *storage, scratch.storage());
    Json object(*seen.object, scratch.storage());
    if (!change(object)) return;
    const bool vanishes = may_vanish(object);
    store::Write write = make_write(*storage, std::move(object), *seen.owners, kept->revision);
    write.remove = vanishes;
    if (write_to(store_, std::move(write)).kept) return;
  }
  fail(Code::conflict, "{} '{}' changes too fast", place.resource.plural, place.name);
}

}  // namespace hearth::apiserver
