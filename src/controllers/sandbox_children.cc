// The steps of a pass that look after a Sandbox's children: volumes, pod, Service.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "client/kinds.h"
#include "controllers/ownership.h"
#include "controllers/pod_guest.h"
#include "controllers/sandbox_lifetime.h"
#include "controllers/sandbox_pass_internal.h"
#include "controllers/sandbox_pod.h"
#include "controllers/sandbox_service.h"
#include "controllers/sandbox_volumes.h"
#include "model/agent_sandbox.h"

namespace hearth::controllers {
namespace {

bool is_already_there(const model::StatusError& error) {
  return error.status().reason == "AlreadyExists";
}

Object share(Json object) {
  return std::make_shared<const Json>(std::move(object));
}

// Runs `act`; what it throws says first what was being done.
template <typename F>
auto doing(std::string_view what, F act) {
  try {
    return act();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", what, error.what()));
  }
}

// One that is gone already is what was wanted.
void remove(client::Client& client, const client::ResourceId& kind, const Json& object) {
  try {
    client.remove(kind, model::namespace_of(object), model::name_of(object),
                  {.uid = std::string(model::uid_of(object))});
  } catch (const model::StatusError& error) {
    if (error.status().code != 404) throw;
  }
}

// A write less than a scheduler's binding.
void choose_node(Json& pod, const Options& options) {
  if (options.node.empty() || !model::text_at(pod, {"spec", "nodeName"}).empty()) return;
  if (options.gives_place && !options.gives_place(pod)) return;
  model::make_object_at(pod, {"spec"})["nodeName"] = options.node;
}

}  // namespace

void SandboxPass::keep_volumes() {
  const tracing::Span span(tools_.options.tracer, "reconcilePVCs", span_.context());
  const JsonArray* templates = model::array_at(*sandbox_, {"spec", "volumeClaimTemplates"});
  if (templates == nullptr) return;
  for (const Json& each : *templates) {
    const std::string name = volume_claim_name(each, *sandbox_);
    const auto claim = doing("failed to get PVC", [&] {
      return tools_.client.find(client::kPersistentVolumeClaims, key_.ns, name);
    });
    if (!claim) {
      tools_.client.create(client::kPersistentVolumeClaims, new_volume_claim(each, *sandbox_),
                           {.manager = kSandboxManager});
      continue;
    }
    const Json repair = volume_claim_repair(*claim, *sandbox_);
    if (repair.is_null()) continue;
    doing("failed to patch PVC with owner reference", [&] {
      tools_.client.patch(client::kPersistentVolumeClaims, key_.ns, name, client::PatchKind::merge,
                          repair, {.manager = kSandboxManager});
    });
  }
}

Object SandboxPass::keep_pod() {
  tracing::Span span(tools_.options.tracer, "reconcilePod", span_.context());
  const auto observe = [&](std::string_view event, const Object& pod) {
    if (pod)
      span.event(event, {{"pod.Name", model::name_of(*pod)},
                         {"pod.Phase", model::text_at(*pod, {"status", "phase"})}});
    return pod;
  };
  const Object pod = choose_pod();
  if (seen_.owned_pods > 1) return nullptr;
  if (is_suspended(*sandbox_)) return suspend(pod);
  return pod ? observe("ExistingPodStatusObserved", keep_running(pod))
             : observe("NewPodStatusObserved", create_pod());
}

std::vector<Object> SandboxPass::owned_pods() const {
  std::vector<Object> owned;
  const std::string value = key_.ns + "/" + model::name_hash(key_.name);
  for (const Object& cached : tools_.caches.pods.find_by_index(kPodsByNameHash, value)) {
    const Object pod = tools_.pods.newest(model::key_of(*cached), cached);
    if (ownership_of(*pod, *sandbox_) == Ownership::owned) owned.push_back(pod);
  }
  return owned;
}

Object SandboxPass::find_pod(std::string_view name, bool is_sure) const {
  const Key key{key_.ns, std::string(name)};
  if (Object known = tools_.pods.newest(key, tools_.caches.pods.find(key.ns, key.name)))
    return known;
  if (!is_sure) return nullptr;
  auto there =
      doing("pod get failed", [&] { return tools_.client.find(client::kPods, key.ns, key.name); });
  return there ? share(std::move(*there)) : nullptr;
}

// Ownership decides; the annotation only says where to look.
Object SandboxPass::choose_pod() {
  std::vector<Object> owned = owned_pods();
  const std::string_view name = pod_name_of(*sandbox_);
  // Where a pod of that name would be made, creating it is the question as well.
  const bool is_made_anyway = !is_suspended(*sandbox_) && name == key_.name;
  const bool is_known_gone =
      is_suspended(*sandbox_) && model::is_condition_true(*sandbox_, "Suspended");
  const Object tracked = find_pod(name, owned.empty() && !is_made_anyway && !is_known_gone);
  if (tracked && ownership_of(*tracked, *sandbox_) == Ownership::owned &&
      std::ranges::none_of(owned, [&](const Object& each) {
        return model::uid_of(*each) == model::uid_of(*tracked);
      }))
    owned.push_back(tracked);
  seen_.owned_pods = owned.size();
  return owned.size() == 1 ? owned.front() : tracked;
}

Object SandboxPass::suspend(const Object& pod) {
  if (!pod || ownership_of(*pod, *sandbox_) != Ownership::owned) {
    set_pod_annotation({});
    return pod;
  }
  pod_ = pod;  // it is there, even if deleting it fails
  if (pod_name_of(*sandbox_) != model::name_of(*pod)) set_pod_annotation({});
  doing("failed to delete pod", [&] { remove_pod(*pod); });
  return pod;
}

Object SandboxPass::keep_running(const Object& pod) {
  const Ownership ownership = ownership_of(*pod, *sandbox_);
  if (ownership == Ownership::foreign) {
    set_pod_annotation({});
    throw_foreign(*pod, *sandbox_, "pod");
  }
  if (ownership == Ownership::unowned) require_adoptable(*pod, *sandbox_, "pod");
  const Object kept = keep_metadata(pod, ownership == Ownership::owned);
  set_pod_annotation(model::name_of(*kept));
  recreate_failed(*kept);
  return kept;
}

Object SandboxPass::keep_metadata(const Object& pod, bool is_owned) {
  if (is_owned && model::is_deleting(*pod)) return pod;
  Json patch = pod_metadata_repair(*pod, *sandbox_);
  if (is_owned && !patch.is_null() && !is_urgent(patch)) {
    const Duration left = tools_.pod_metadata.left(
        key_, std::min(tools_.options.write_behind, kLongestDeferral), now());
    if (left > Duration::zero()) {
      look_again_after(left);
      return pod;
    }
  }
  tools_.pod_metadata.clear(key_);
  if (!is_owned) {
    if (patch.is_null()) patch = JsonObject();
    add_adoption(patch, *pod, *sandbox_);
  }
  if (patch.is_null()) return pod;
  return doing("failed to patch pod", [&] {
    return tools_.pods.remember(tools_.client.patch(client::kPods, key_.ns, model::name_of(*pod),
                                                    client::PatchKind::merge, patch,
                                                    {.manager = kSandboxManager}));
  });
}

Object SandboxPass::create_pod() {
  Json pod = new_pod(*sandbox_);
  add_guest(pod, *sandbox_, tools_.options.guest_image);
  choose_node(pod, tools_.options);
  try {
    const Object created = tools_.pods.remember(
        tools_.client.create(client::kPods, std::move(pod), {.manager = kSandboxManager}));
    set_pod_annotation(key_.name);
    return created;
  } catch (const model::StatusError& error) {
    if (!is_already_there(error)) {
      set_pod_annotation({});  // whatever it named is gone
      throw;
    }
  }
  auto there = doing("pod already exists but failed to fetch",
                     [&] { return tools_.client.get(client::kPods, key_.ns, key_.name); });
  return keep_running(there);
}

void SandboxPass::recreate_failed(const Json& pod) {
  if (!recreates_failed_pods(*sandbox_) || model::is_deleting(pod)) return;
  if (model::text_at(pod, {"status", "phase"}) != "Failed") return;
  const Duration left = tools_.failures.left(key_, pod, now());
  if (left > Duration::zero()) return look_again_after(left);
  doing("failed to delete pod", [&] { remove_pod(pod); });
  tools_.events.record(*sandbox_, reconcile::EventType::normal, "PodRecreated", "Reconciling",
                       fmt::format("Pod {} failed and is made again", model::name_of(pod)));
}

void SandboxPass::remove_pod(const Json& pod) {
  if (!model::is_deleting(pod)) remove(tools_.client, client::kPods, pod);
}

// A Service that the status tells of is looked for where it is, if the cache has none: it may have
// lost the label that the cache goes by.
Object SandboxPass::find_service() const {
  if (Object known = tools_.services.newest(key_, tools_.caches.services.find(key_.ns, key_.name)))
    return known;
  if (model::text_at(old_status_, {"service"}).empty()) return nullptr;
  auto there = doing("service get failed",
                     [&] { return tools_.client.find(client::kServices, key_.ns, key_.name); });
  return there ? share(std::move(*there)) : nullptr;
}

Object SandboxPass::keep_service() {
  const Object service = find_service();
  if (service) return keep_existing_service(service);
  return service_wish(*sandbox_) == ServiceWish::wanted ? create_service() : nullptr;
}

Object SandboxPass::create_service() {
  try {
    return tools_.services.remember(tools_.client.create(client::kServices, new_service(*sandbox_),
                                                         {.manager = kSandboxManager}));
  } catch (const model::StatusError& error) {
    if (!is_already_there(error)) throw;
  }
  return keep_existing_service(tools_.client.get(client::kServices, key_.ns, key_.name));
}

Object SandboxPass::keep_existing_service(const Object& service) {
  const ServiceWish wish = service_wish(*sandbox_);
  const Ownership ownership = ownership_of(*service, *sandbox_);
  if (wish == ServiceWish::unwanted) {
    if (ownership == Ownership::owned)
      doing("failed to delete service", [&] { remove_service(*service); });
    return nullptr;
  }
  if (ownership == Ownership::foreign) throw_foreign(*service, *sandbox_, "service");
  if (ownership == Ownership::unowned) {
    if (wish == ServiceWish::unset) return nullptr;
    const Json adopted = adopted_service(*service, *sandbox_);
    return doing("failed to update service with owner reference", [&] {
      return tools_.services.remember(
          tools_.client.update(client::kServices, adopted, {}, {.manager = kSandboxManager}));
    });
  }
  const Json repair = service_repair(*service, *sandbox_);
  if (repair.is_null()) return service;
  return doing("failed to patch owned service", [&] {
    return tools_.services.remember(tools_.client.patch(client::kServices, key_.ns, key_.name,
                                                        client::PatchKind::merge, repair,
                                                        {.manager = kSandboxManager}));
  });
}

void SandboxPass::remove_service(const Json& service) {
  tools_.services.forget(key_);
  if (!model::is_deleting(service)) remove(tools_.client, client::kServices, service);
}

void SandboxPass::set_pod_annotation(std::string_view pod_name) {
  if (model::annotation_of(*sandbox_, model::kPodNameAnnotation) == pod_name) return;
  set_annotation(model::kPodNameAnnotation, pod_name.empty() ? Json(nullptr) : Json(pod_name),
                 "failed to set pod name annotation");
}

// Whoever looks at it later finds the trace that it was made in.
void SandboxPass::set_trace_annotation() {
  if (!span_.context() || !model::annotation_of(*sandbox_, model::kTraceContextAnnotation).empty())
    return;
  set_annotation(model::kTraceContextAnnotation, Json(tracing::to_annotation(*span_.context())),
                 "failed to set trace context annotation");
}

void SandboxPass::set_annotation(std::string_view key, const Json& value, std::string_view what) {
  const Json patch =
      JsonObject{{"metadata", JsonObject{{"annotations", JsonObject{{key, value}}}}}};
  const Object patched = doing(what, [&] {
    return tools_.sandboxes.remember(tools_.client.patch(client::kSandboxes, key_.ns, key_.name,
                                                         client::PatchKind::merge, patch,
                                                         {.manager = kSandboxManager}));
  });
  // A spec that changed meanwhile is for the next pass: this one acts and tells of what it began
  // with.
  if (model::generation_of(*patched) == model::generation_of(*sandbox_)) sandbox_ = patched;
}

}  // namespace hearth::controllers
