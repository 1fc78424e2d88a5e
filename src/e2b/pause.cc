#include "e2b/pause.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/on_failure.h"
#include "controllers/sandbox_pod.h"
#include "e2b/answers.h"
#include "e2b/life.h"
#include "e2b/outfitting.h"
#include "e2b/state.h"
#include "e2b/words.h"
#include "model/front_door.h"
#include "model/status.h"
#include "net/workers.h"
#include "pool/reach.h"

namespace hearth::e2b {
namespace {

constexpr std::string_view kImagePrefix = "hearth.dev/e2b/paused/";

Json annotated(std::string_view key, const Json& value) {
  return JsonObject{{"metadata", JsonObject{{"annotations", JsonObject{{key, value}}}}}};
}

// Since now, and without end.
void put_paused(Core& core, Json& patch) {
  put_end(patch, core.now(), /*kills=*/false);
}

// As it ended before, in a patch that takes another one back.
void put_old_end(const Json& sandbox, Json& patch) {
  const bool kills = model::find(sandbox, {"spec", "shutdownTime"}) != nullptr;
  if (const auto end = end_at(sandbox)) put_end(patch, *end, kills);
}

Object wait_for_state(Core& core, const Json& sandbox, State wanted, Duration patience) {
  const std::string uid(model::uid_of(sandbox));
  bool is_gone = false;
  const auto found = core.sandbox_waits.until(
      model::key_of(sandbox),
      [&](const Json* object) {
        is_gone =
            object == nullptr || model::uid_of(*object) != uid || state_of(*object) == State::none;
        return is_gone || state_of(*object) == wanted;
      },
      patience);
  if (is_gone) refuse_unknown_sandbox(model::name_of(sandbox));
  if (!found)
    fail(Code::timeout, "sandbox '{}' has not become {} in time", model::name_of(sandbox),
         state_text(wanted));
  return *found;
}

void pause_memory(Core& core, const Json& sandbox, std::string_view version) {
  OnFailure undo([&] {
    Json back = annotated(model::kPauseAnnotation, nullptr);
    put_old_end(sandbox, back);
    core.patch_sandbox(sandbox, std::move(back));
  });
  Json patch = annotated(model::kPauseAnnotation, "memory");
  put_paused(core, patch);
  try {
    core.patch_sandbox(sandbox, std::move(patch), version);
  } catch (const model::StatusError& error) {
    // Nothing was written, and what is there now is somebody's word.
    if (error.status().code == 409) undo.release();
    throw;
  }
  wait_for_state(core, sandbox, State::paused, core.options.pause_patience);
  undo.release();
}

// The first container from that image, which nobody can pull.
model::JsonArray containers_with(const Json& sandbox, std::string_view image) {
  const auto* there = model::array_at(sandbox, {"spec", "podTemplate", "spec", "containers"});
  if (there == nullptr || there->empty())
    fail(Code::invalid, "sandbox '{}' has no container", model::name_of(sandbox));
  model::JsonArray containers = *there;
  containers.front().as_object()["image"] = image;
  containers.front().as_object()["imagePullPolicy"] = "Never";
  return containers;
}

void remove_images(Core& core, const std::vector<std::string>& images) {
  for (const std::string& each : images) {
    try {
      core.parts.reach->remove_image(each);
    } catch (const Error& error) {
      log::warning("an image of a paused sandbox stays",
                   {{"image", each}, {"error", error.what()}});
    }
  }
}

// Its files become an image, and its pod goes; also of one whose memory was kept.
void put_away(Core& core, const Json& sandbox, std::string_view version = {}) {
  if (core.parts.reach == nullptr)
    refuse_unoffered("pausing without memory", "this engine cannot reach into its sandboxes");
  const Object pod = wait_for_pod(core, sandbox, core.options.pause_patience);
  const std::vector<std::string> before = images_of(sandbox);
  const std::string image =
      fmt::format("{}{}:{}", kImagePrefix, model::name_of(sandbox), random_hex(8));
  OnFailure undo([&] { remove_images(core, {image}); });
  ask_below(model::name_of(sandbox), [&] {
    const net::Workers::Aside aside;
    core.parts.reach->commit(*pod, image);
  });
  std::vector<std::string> images = before;
  images.push_back(image);
  Json patch =
      annotated(kImagesAnnotation, Json(fmt::format("{}", fmt::join(images, ",")).c_str()));
  JsonObject& annotations = model::make_object_at(patch, {"metadata", "annotations"});
  annotations[model::kPauseAnnotation] = nullptr;
  annotations[kContainerAnnotation] = nullptr;  // the next one begins with the image
  if (state_of(sandbox) != State::paused) put_paused(core, patch);
  JsonObject& spec = model::make_object_at(patch, {"spec"});
  spec["operatingMode"] = "Suspended";
  spec["podTemplate"] =
      JsonObject{{"spec", JsonObject{{"containers", containers_with(sandbox, image)}}}};
  core.patch_sandbox(sandbox, std::move(patch), version);
  undo.release();
  const Object paused = wait_for_state(core, sandbox, State::paused, core.options.pause_patience);
  // Those of earlier pauses: nothing runs from them any more.
  remove_images(core, before);
  core.patch_sandbox(*paused, annotated(kImagesAnnotation, Json(image)));
}

// Its time begins when it runs; until then its end is so late that starting uses up none of it.
Json resume_patch(const Core& core, const Json& sandbox, std::int64_t seconds) {
  Json patch = annotated(model::kPauseAnnotation, nullptr);
  put_end(patch, core.latest_start() + std::chrono::seconds(seconds), !pauses_at_end(sandbox));
  if (controllers::is_suspended(sandbox))
    model::make_object_at(patch, {"spec"})["operatingMode"] = "Running";
  return patch;
}

// As it was: paused, and without end.
Json paused_again(const Json& sandbox) {
  Json patch = JsonObject();
  put_old_end(sandbox, patch);
  if (controllers::is_suspended(sandbox))
    model::make_object_at(patch, {"spec"})["operatingMode"] = "Suspended";
  else
    model::make_object_at(patch, {"metadata", "annotations"})[model::kPauseAnnotation] = "memory";
  return patch;
}

}  // namespace

std::vector<std::string> images_of(const Json& sandbox) {
  std::vector<std::string> images = split_list(model::annotation_of(sandbox, kImagesAnnotation));
  // Whoever may write a Sandbox may write anything there; only what we made is removed.
  std::erase_if(images, [&](const std::string& each) {
    return !each.starts_with(fmt::format("{}{}:", kImagePrefix, model::name_of(sandbox)));
  });
  return images;
}

void pause(Core& core, const Json& sandbox, Keeps keeps, std::string_view version) {
  if (keeps == Keeps::memory)
    pause_memory(core, sandbox, version);
  else
    put_away(core, sandbox, version);
}

Json resume(Core& core, const Json& sandbox, std::int64_t seconds, Keeps keeps) {
  Object paused = std::make_shared<const Json>(sandbox);
  if (keeps == Keeps::files && !controllers::is_suspended(sandbox)) {
    put_away(core, sandbox);
    paused = core.get_sandbox(model::namespace_of(sandbox), model::name_of(sandbox));
  }
  OnFailure undo([&] { core.patch_sandbox(*paused, paused_again(*paused)); });
  core.patch_sandbox(*paused, resume_patch(core, *paused, seconds));
  const Object running = wait_until_ready(core, *paused, core.options.start_patience);
  if (has_lost_its_state(core, *running)) {
    undo.release();
    kill(core, *running);
    refuse_unknown_sandbox(model::name_of(sandbox));
  }
  const Object pod = wait_for_pod(core, *running, core.options.start_patience);
  if (!core.outfitted.has(model::key_of(*running), container_of(*pod)))
    outfit_pod(core, *running, *pod, read_environment(core, *running));
  Json patch = annotated(kContainerAnnotation, Json(container_of(*pod)));
  put_end(patch, core.now() + std::chrono::seconds(seconds), !pauses_at_end(*running));
  Json begun = core.patch_sandbox(*running, std::move(patch));
  undo.release();
  return begun;
}

void wake(Core& core, const model::Key& key) {
  const auto turn = core.turns.take(key);
  const Object sandbox = core.find_sandbox(key.ns, key.name);
  if (!sandbox) refuse_unknown_sandbox(key.name);
  if (state_of(*sandbox) == State::running) return;
  if (model::annotation_of(*sandbox, model::kAutoResumeAnnotation) != "true")
    fail(Code::forbidden, "sandbox '{}' is paused, and does not wake by itself", key.name);
  const auto team = core.parts.keys.find_team(key.ns);
  const tenants::Limits limits = team ? team->limits : tenants::Limits();
  const Census::Place place = core.census.admit(key.ns, limits.sandboxes, key.name);
  // Another process may be about to pause it.
  const Object paused = wait_for_state(core, *sandbox, State::paused, core.options.pause_patience);
  // Whoever let its memory go has to say himself when it is to start anew: any scan of ports would.
  if (controllers::is_suspended(*paused)) refuse_unknown_sandbox(key.name);
  const std::int64_t seconds = std::min(timeout_of(*paused), limits.lifetime_seconds);
  resume(core, *paused, seconds, Keeps::memory);
}

}  // namespace hearth::e2b
