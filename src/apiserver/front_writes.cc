#include <fmt/format.h>

#include "apiserver/body.h"
#include "apiserver/kept.h"
#include "apiserver/negotiation.h"
#include "apiserver/object_meta.h"
#include "apiserver/pods.h"
#include "base/time_text.h"
#include "model/read_json.h"
#include "model/scratch.h"
#include "patch/patch.h"

namespace hearth::apiserver {
namespace {

http::Response json_answer(unsigned status, const Json& json) {
  return {status, {{"Content-Type", "application/json"}}, model::to_text(json) + "\n"};
}

Json success(const Resource& resource, const std::string& name, const std::string& uid) {
  model::Status status{.code = 200, .reason = "", .message = ""};
  status.name = name;
  status.group = resource.group;
  status.kind = resource.plural;
  status.uid = uid;
  return model::to_json(status);
}

Json created() {
  Json answer = model::to_json(model::Status{.code = 201, .reason = "", .message = ""});
  answer.as_object()["code"] = 201;
  return answer;
}

// Pods and namespaces answer with themselves, even if they are gone.
bool answers_with_object(const Resource& resource, const Deleted& deleted) {
  return !deleted.gone || resource.store_name == "pods";
}

PatchKind patch_kind(const Call& call) {
  switch (patch_format(call.request.headers.value("Content-Type"), call.resource->built_in)) {
    case PatchFormat::json_patch:
      return PatchKind::json;
    case PatchFormat::merge:
      return PatchKind::merge;
    case PatchFormat::strategic:
      return PatchKind::strategic;
    case PatchFormat::apply:
      return PatchKind::apply;
  }
  return PatchKind::merge;
}

model::ParsedJson read_patch(const Call& call, PatchKind kind, model::Scratch& scratch) {
  try {
    if (call.body) return {model::checked_copy(*call.body, scratch.storage()), {}};
    return kind == PatchKind::apply ? model::parse_yaml(call.request.body)
                                    : model::parse_json(call.request.body, scratch.storage());
  } catch (const model::StatusError&) {
    throw;
  } catch (const Error& error) {
    model::throw_bad_request(fmt::format("error decoding patch: {}", error.what()));
  }
}

// Of what is posted to a pod: it says which, as the path does.
void check_same_pod(const Call& call, const Json& body) {
  check_namespace_of(body, call.path->ns.value_or(""));
  if (name_of(body) != call.path->name)
    model::throw_bad_request(fmt::format("name in URL does not match name in {} object",
                                         model::text_at(body, {"kind"})));
}

}  // namespace

void Front::after_write(const Resource& resource) {
  if (resource.store_name == "customresourcedefinitions.apiextensions.k8s.io")
    parts_.definitions_changed();
}

// What a write amounts to, an apply or a patch too, is more than its body says: whether it makes
// something, or gives away rights, is asked of the object that it leads to.
WriteOptions Front::write_options(const Call& call, std::string_view kind) const {
  WriteOptions options = read_write_options(call, kind);
  const bool grants = call.resource->group == access::kRbacGroup;
  const bool may_create = call.request.method == "PATCH";  // an apply does, if nothing is there
  if (grants || may_create)
    options.approve = [this, &call, grants, may_create](const Json& object, const Json* old) {
      if (may_create && !old)
        parts_.gate.require(call.user, {.verb = "create",
                                        .group = call.path->group,
                                        .version = call.path->version,
                                        .resource = call.path->plural,
                                        .ns = call.path->ns.value_or(""),
                                        .name = call.path->name});
      if (grants) parts_.gate.check_grant(call.user, object, old);
    };
  return options;
}

Written Front::post(const Call& call) {
  const WriteOptions options = write_options(call, "CreateOptions");
  model::Scratch scratch;
  model::ParsedJson body = read_object(call, scratch.storage());
  // A name in the path is the object's, if it has none; the real server lets POST do this, too.
  if (!call.path->name.empty() && call.resource->built_in) model::throw_method_not_allowed();
  Place place = place_of(call);
  place.name.clear();
  Written written = parts_.objects.create(place, std::move(body), options);
  after_write(*call.resource);
  return written;
}

Written Front::put(const Call& call) {
  const WriteOptions options = write_options(call, "UpdateOptions");
  model::Scratch scratch;
  const model::ParsedJson body = read_object(call, scratch.storage());
  if (const std::string_view name = name_of(body.value); name != call.path->name)
    model::throw_bad_request(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})", name,
                    call.path->name));
  Written written = parts_.objects.update(place_of(call), body, call.path->subresource, options);
  after_write(*call.resource);
  return written;
}

Written Front::patch(const Call& call) {
  const PatchKind kind = patch_kind(call);
  const WriteOptions options = write_options(call, "PatchOptions");
  if (kind == PatchKind::apply && call.query.text("fieldManager").empty())
    model::throw_invalid({"meta.k8s.io", "PatchOptions"}, "",
                         {model::required("fieldManager", "is required for apply patch")});
  if (kind != PatchKind::apply && call.query.has("force"))
    model::throw_invalid({"meta.k8s.io", "PatchOptions"}, "",
                         {model::forbidden("force", "may not be specified for non-apply patch")});
  model::Scratch scratch;
  const model::ParsedJson body = read_patch(call, kind, scratch);
  Written written = parts_.objects.patch(place_of(call), kind, body.value, call.path->subresource,
                                         options, body.duplicates);
  after_write(*call.resource);
  return written;
}

JsonPtr Front::patch_checked(const access::User& user, const client::ResourceId& id,
                             std::string_view ns, std::string_view name, const Json& patch,
                             bool news_can_wait) {
  const ResourcePtr resource = parts_.catalogue()->find(id.group, id.version, id.plural);
  if (!resource) model::throw_not_found({id.group, id.plural}, name);
  const Place place{*resource, std::string(ns), std::string(name)};
  parts_.gate.require(user, {.verb = "patch",
                             .group = id.group,
                             .version = id.version,
                             .resource = id.plural,
                             .ns = place.ns,
                             .name = place.name});
  const Written written = parts_.objects.patch(
      place, PatchKind::merge, patch, "",
      {.manager = kOwnManager, .is_checked = true, .news_can_wait = news_can_wait});
  after_write(*resource);
  if (written.object) return look(*written.object, *resource);
  return std::make_shared<const Json>(model::read_json(written.text));
}

http::Response Front::remove(const Call& call) {
  const DeleteOptions options = read_delete_options(call);
  const Place place = place_of(call);
  const Deleted deleted = parts_.objects.remove(place, options);
  after_write(*call.resource);
  if (answers_with_object(place.resource, deleted)) return render_object(call, 200, deleted.text);
  return json_answer(200, success(place.resource, place.name, deleted.uid));
}

http::Response Front::remove_collection(const Call& call) {
  const DeleteOptions options = read_delete_options(call);
  if (call.resource->store_name == "namespaces" || (call.resource->namespaced && !call.path->ns))
    model::throw_method_not_allowed();
  // What is answered is what goes, and nothing else: with a limit no more than that.
  std::vector<store::ObjectPtr> listed;
  const http::Response matched = list(call, &listed);
  for (const store::ObjectPtr& object : listed) {
    try {
      parts_.objects.remove({*call.resource, object->key.ns, object->key.name}, options);
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
    }
  }
  after_write(*call.resource);
  return matched;
}

http::Response Front::scale(const Call& call) {
  const Place place = place_of(call);
  const std::string& method = call.request.method;
  if (method == "GET" || method == "HEAD")
    return render_object(call, 200, model::to_text(parts_.objects.scale(place)));
  if (method == "PUT") {
    const WriteOptions options = read_write_options(call, "UpdateOptions");
    const Json body = read_any(call, "autoscaling/v1", "Scale").value;
    const Json scaled =
        parts_.objects.set_scale(place, [&](Json& scale) { scale = body; }, options);
    return render_object(call, 200, model::to_text(scaled));
  }
  if (method != "PATCH") model::throw_method_not_allowed();
  const PatchKind kind = patch_kind(call);
  const WriteOptions options = read_write_options(call, "PatchOptions");
  model::Scratch scratch;
  const Json body = read_patch(call, kind, scratch).value;
  const auto change = [&](Json& scale) {
    if (kind == PatchKind::json)
      patch::apply_json_patch(scale, body);
    else
      patch::apply_merge_patch(scale, body);
  };
  const Json scaled = parts_.objects.set_scale(place, change, options);
  return render_object(call, 200, model::to_text(scaled));
}

http::Response Front::evict(const Call& call) {
  const Json eviction = read_any(call, "policy/v1", "Eviction").value;
  check_same_pod(call, eviction);
  DeleteOptions options;
  options.grace_seconds = model::number_at(eviction, {"deleteOptions", "gracePeriodSeconds"});
  if (const std::string_view uid =
          model::text_at(eviction, {"deleteOptions", "preconditions", "uid"});
      !uid.empty())
    options.uid = uid;
  const model::JsonArray* dry_run = model::array_at(eviction, {"deleteOptions", "dryRun"});
  options.dry_run = (dry_run && !dry_run->empty()) || call.query.text("dryRun") == "All";
  parts_.objects.remove(place_of(call), options);
  return json_answer(201, created());
}

http::Response Front::bind(const Call& call) {
  const Json binding = read_any(call, "v1", "Binding").value;
  check_same_pod(call, binding);
  const std::string now = format_rfc3339(parts_.clock.now());
  parts_.objects.get(place_of(call));
  parts_.objects.amend(place_of(call), [&](Json& pod) {
    bind_pod(pod, binding, now);
    return true;
  });
  return json_answer(201, created());
}

http::Response Front::issue_token(const Call& call) {
  const Json account = view(*parts_.objects.get(place_of(call)), *call.resource);
  const Json request = read_any(call, "authentication.k8s.io/v1", "TokenRequest").value;
  return json_answer(201, parts_.gate.issue_token(account, request));
}

http::Response Front::review(const Call& call) {
  const Json request = read_object(call).value;
  return json_answer(
      201, parts_.gate.review(call.user, *call.resource, call.path->ns.value_or(""), request));
}

}  // namespace hearth::apiserver
