// New objects that are given something as they are made (client/welcome.h).
#include "apiserver/kept.h"
#include "apiserver/object_meta.h"
#include "apiserver/objects_internal.h"

namespace hearth::apiserver {

void Objects::set_welcomer(const model::GroupResource& kind, client::Welcomer welcomer) {
  welcomers_.set(kind.text(), std::move(welcomer));
}

// Nothing: there is nothing to be written, or it is not what the patch was meant for.
std::optional<store::Write> Objects::stage_patch(const Place& place, const Json& patch) {
  std::optional<store::Write> staged;
  try {
    this->patch(place, PatchKind::merge, patch, "",
                {.manager = kOwnManager, .is_checked = true, .staged = &staged});
  } catch (const model::StatusError&) {
    return std::nullopt;
  }
  return staged;
}

// Nothing: nobody has anything for it, or others were faster.
std::optional<store::ObjectPtr> Objects::make_welcomed(const Place& place, const Json& object,
                                                       const patch::Owners& owners,
                                                       const WriteOptions& options) {
  const Resource& resource = place.resource;
  const Welcomers::Visit visit(welcomers_, resource.group_resource().text());
  // Who welcomes objects knows them as they are kept.
  if (visit.is_in_vain() || resource.version != resource.storage_version) return std::nullopt;
  if (store_.find({resource.store_name, place.ns, std::string(name_of(object))}))
    return std::nullopt;
  const std::optional<client::Welcome> welcome = visit.ask(object);
  if (!welcome) return std::nullopt;
  const ResourcePtr kind =
      catalogue_()->find(welcome->kind.group, welcome->kind.version, welcome->kind.plural);
  if (!kind) return std::nullopt;
  std::optional<store::Write> other =
      stage_patch({*kind, welcome->key.ns, welcome->key.name}, welcome->patch);
  if (!other) return std::nullopt;
  Json with_status = object;
  with_status.as_object()["status"] = welcome->status;
  store::Write own = make_write(resource, std::move(with_status), owners, 0);
  if (options.durability) own.durability = *options.durability;
  std::vector<store::Write> writes;
  writes.push_back(std::move(*other));
  writes.push_back(std::move(own));
  std::vector<store::Outcome> outcomes;
  try {
    outcomes = store_.write_together(std::move(writes));
  } catch (const Error& error) {
    rethrow_from_store(error);
  }
  if (!outcomes.front().kept) return std::nullopt;
  welcome->kept(look(*outcomes[1].object, resource), look(*outcomes[0].object, *kind));
  return outcomes[1].object;
}

}  // namespace hearth::apiserver
