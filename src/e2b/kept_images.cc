#include "e2b/kept_images.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/on_failure.h"
#include "client/kinds.h"
#include "controllers/sandbox_pod.h"
#include "e2b/answers.h"
#include "e2b/outfitting.h"
#include "e2b/pause.h"
#include "e2b/state.h"
#include "e2b/words.h"
#include "model/front_door.h"
#include "net/workers.h"
#include "pool/reach.h"

namespace hearth::e2b {
namespace {

constexpr std::string_view kOurs = "hearth.dev/e2b/";
constexpr std::string_view kPrefix = "hearth.dev/e2b/kept/";
// What runs has a pod; its cache may be a moment behind.
constexpr Duration kPodPatience = std::chrono::seconds(5);
// What a Sandbox has of its own, besides its life.
constexpr std::array<std::string_view, 3> kCopied = {"podTemplate", "volumeClaimTemplates",
                                                     "service"};

// The one of ours that an object names; empty for none. Others' images are none of our business.
std::string image_of(const Json& object) {
  const auto* containers = model::array_at(object, {"spec", "podTemplate", "spec", "containers"});
  if (containers == nullptr || containers->empty()) return {};
  const std::string_view image = model::text_at(containers->front(), {"image"});
  return image.starts_with(kPrefix) ? std::string(image) : std::string();
}

// Every one of ours that an object names: what it starts from, and what its pauses made.
std::vector<std::string> names_in(const Json& object) {
  std::vector<std::string> names = images_of(object);
  const auto* containers = model::array_at(object, {"spec", "podTemplate", "spec", "containers"});
  if (containers == nullptr) return names;
  for (const Json& each : *containers) {
    const std::string_view image = model::text_at(each, {"image"});
    if (image.starts_with(kOurs)) names.emplace_back(image);
  }
  return names;
}

std::vector<std::string> find_ours(const Core& core) {
  if (core.parts.reach == nullptr) return {};
  try {
    return core.parts.reach->find_images(kOurs);
  } catch (const Error& error) {
    log::warning("images of an earlier life are not looked for", {{"error", error.what()}});
    return {};
  }
}

template <typename IsSystem>
void drop_system_keys(Json& metadata, std::string_view field, IsSystem is_system) {
  Json* all = model::find(metadata, {field});
  if (all == nullptr || !all->is_object()) return;
  JsonObject& keys = all->get_object();
  for (auto each = keys.begin(); each != keys.end();)
    each = is_system(each->key()) ? keys.erase(each) : each + 1;
}

}  // namespace

KeptImages::KeptImages(Core& core) : core_(core), found_(find_ours(core)) {
  const client::CacheHandlers handlers{
      .on_add = [this](const Object& now) { hold(image_of(*now)); },
      .on_update =
          [this](const Object& before, const Object& now) {
            // First the new, so that the same one is never without.
            hold(image_of(*now));
            release(image_of(*before));
          },
      .on_delete = [this](const Object& last) { release(image_of(*last)); },
  };
  core.sandboxes.add_handlers(handlers);
  core.templates.add_handlers(handlers);
  remover_ = std::thread([this] { run(); });
}

KeptImages::~KeptImages() {
  stop();
}

void KeptImages::sweep() {
  std::set<std::string> unnamed(found_.begin(), found_.end());
  for (const client::WatchCache* cache : {&core_.sandboxes, &core_.templates})
    for (const Object& each : cache->list())
      for (const std::string& name : names_in(*each)) unnamed.erase(name);
  const std::lock_guard lock(mutex_);
  leftovers_.insert(leftovers_.end(), unnamed.begin(), unnamed.end());
  changed_.notify_all();
}

void KeptImages::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    changed_.notify_all();
  }
  if (remover_.joinable()) remover_.join();
}

KeptImages::Pin KeptImages::commit(const Json& pod) {
  if (core_.parts.reach == nullptr)
    refuse_unoffered("making an image of a sandbox", "this engine cannot reach into its sandboxes");
  std::string name = std::string(kPrefix) + new_sandbox_id();
  hold(name);
  // What is there of it when it fails half-way goes as well.
  OnFailure undo([&] { release(name); });
  ask_below(model::name_of(pod), [&] {
    const net::Workers::Aside aside;
    core_.parts.reach->commit(pod, name);
  });
  undo.release();
  return {*this, std::move(name)};
}

KeptImages::Pin KeptImages::pin(const Json& sandbox_template) {
  std::string name = image_of(sandbox_template);
  hold(name);
  return {*this, std::move(name)};
}

void KeptImages::hold(const std::string& name) {
  if (name.empty()) return;
  const std::lock_guard lock(mutex_);
  ++uses_[name];
}

void KeptImages::release(const std::string& name) {
  if (name.empty()) return;
  const std::lock_guard lock(mutex_);
  const auto found = uses_.find(name);
  if (found == uses_.end() || --found->second > 0) return;
  uses_.erase(found);
  leftovers_.push_back(name);
  changed_.notify_all();
}

bool KeptImages::is_named(const std::string& name) const {
  const auto names_it = [&](const Object& each) {
    const std::vector<std::string> names = names_in(*each);
    return std::ranges::find(names, name) != names.end();
  };
  if (std::ranges::any_of(core_.sandboxes.list(), names_it)) return true;
  if (std::ranges::any_of(core_.templates.list(), names_it)) return true;
  const client::List snapshots = core_.parts.client.list_all(
      client::kSandboxTemplates, {.ns = {},
                                  .label_selector = std::string(kSnapshotLabel),
                                  .field_selector = {},
                                  .limit = 0,
                                  .continue_token = {},
                                  .resource_version = {}});
  return std::ranges::any_of(snapshots.items,
                             [&](const Json& each) { return image_of(each) == name; });
}

void KeptImages::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_stopped_ || !leftovers_.empty(); });
    if (is_stopped_) return;
    const std::string name = std::move(leftovers_.front());
    leftovers_.pop_front();
    if (core_.parts.reach == nullptr) continue;
    lock.unlock();
    try {
      if (!is_named(name)) core_.parts.reach->remove_image(name);
    } catch (const std::exception& error) {
      log::warning("an image that nothing uses stays", {{"image", name}, {"error", error.what()}});
    }
    lock.lock();
  }
}

KeptFiles keep_files(Core& core, KeptImages& images, const Call& call) {
  const auto turn = core.turns.take(model::key_of(*call.sandbox(core)));
  Object sandbox = call.sandbox(core);
  if (state_of(*sandbox) != State::running)
    refuse(409, "sandbox '{}' does not run; resume it first", model::name_of(*sandbox));
  Object pod = wait_for_pod(core, *sandbox, kPodPatience);
  return {sandbox, pod, images.commit(*pod)};
}

Json spec_from_image(const Json& sandbox, const Json& pod, std::string_view image) {
  Json spec = JsonObject();
  for (const std::string_view field : kCopied)
    if (const Json* value = model::find(sandbox, {"spec", field}))
      spec.get_object()[field] = *value;
  if (Json* metadata = model::find(spec, {"podTemplate", "metadata"})) {
    drop_system_keys(*metadata, "labels", controllers::is_system_label);
    drop_system_keys(*metadata, "annotations", [](std::string_view key) {
      return controllers::is_system_annotation(key) || key == model::kDressAnnotation;
    });
  }
  JsonObject& pod_spec = model::make_object_at(spec, {"podTemplate", "spec"});
  Json* containers = pod_spec.if_contains("containers");
  if (containers == nullptr || !containers->is_array() || containers->get_array().empty())
    fail(Code::invalid, "sandbox '{}' has no container", model::name_of(sandbox));
  JsonObject& first = containers->get_array().front().as_object();
  first["image"] = image;
  // Nobody can pull it, and it is there and nowhere else.
  first["imagePullPolicy"] = "Never";
  if (const auto node = model::text_at(pod, {"spec", "nodeName"}); !node.empty())
    pod_spec["nodeName"] = node;
  return spec;
}

}  // namespace hearth::e2b
