#include "e2b/keeper.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/log.h"
#include "e2b/answers.h"
#include "e2b/life.h"
#include "e2b/outfitting.h"
#include "e2b/pause.h"
#include "e2b/state.h"
#include "e2b/words.h"
#include "model/agent_sandbox.h"
#include "model/front_door.h"
#include "model/status.h"
#include "pool/reach.h"
#include "reconcile/manager.h"

namespace hearth::e2b {
namespace {

// Somebody is at it; what he leaves undone is looked at then.
constexpr Duration kAfterOthers = std::chrono::seconds(1);
// It has changed since the cache showed it, and may have more time now: when that is told, which is
// soon.
constexpr Duration kLookAgain = std::chrono::milliseconds(20);
// Each may wait for the node to freeze a sandbox.
constexpr unsigned kWorkers = 8;
// A new sandbox needs nothing of us: those who are being made go first.
constexpr Duration kPatience = std::chrono::milliseconds(100);

// What is neither on its way somewhere nor away.
bool is_kept(const Json& sandbox) {
  const State state = state_of(sandbox);
  return state == State::running || state == State::paused;
}

// Does what is meant for the version that was seen.
reconcile::Next if_unchanged(const std::function<void()>& act) {
  try {
    act();
  } catch (const model::StatusError& error) {
    if (error.status().code != 409) throw;
    return kLookAgain;
  }
  return reconcile::kWhenChanged;
}

bool is_ours(const Json& sandbox) {
  return model::label_of(sandbox, model::kFrontLabel) == kFront;
}

}  // namespace

void Keeper::add_to(reconcile::Manager& manager) {
  reconcile::Controller& controller = manager.add(*this, {.name = "e2b",
                                                          .workers = kWorkers,
                                                          .queue = {},
                                                          .resync = std::chrono::hours(10),
                                                          .is_background = true,
                                                          .patience = kPatience});
  // Before the controller's own handler, which makes a worker look.
  core_.sandboxes.add_handlers(
      {.on_add = {}, .on_update = {}, .on_delete = [this](const Object& last) {
         if (is_ours(*last)) saw_deleted(*last);
       }});
  controller.watch(core_.sandboxes, [](const Json& before, const Json& now) {
    return is_ours(now) && (model::generation_of(before) != model::generation_of(now) ||
                            end_at(before) != end_at(now) || state_of(before) != state_of(now));
  });
  controller.watch_owned(core_.pods, model::kCoreGroup, "Sandbox",
                         [](const Json& before, const Json& now) {
                           return container_of(before) != container_of(now);
                         });
}

void Keeper::saw_deleted(const Json& sandbox) {
  core_.outfitted.forget(model::key_of(sandbox));
  std::vector<std::string> images = images_of(sandbox);
  if (images.empty()) return;
  const std::lock_guard lock(mutex_);
  leftovers_.insert_or_assign(model::key_of(sandbox), std::move(images));
}

void Keeper::clear_up(const model::Key& key) {
  std::vector<std::string> images;
  {
    const std::lock_guard lock(mutex_);
    const auto found = leftovers_.find(key);
    if (found == leftovers_.end()) return;
    images = found->second;
  }
  // One that is in use throws: again, when its pod is gone.
  if (core_.parts.reach != nullptr)
    for (const std::string& each : images) core_.parts.reach->remove_image(each);
  const std::lock_guard lock(mutex_);
  leftovers_.erase(key);
}

reconcile::Next Keeper::reconcile(const model::Key& key) {
  const Object seen = core_.sandboxes.find(key.ns, key.name);
  if (!seen) {
    clear_up(key);
    return reconcile::kWhenChanged;
  }
  if (!is_kept(*seen)) return reconcile::kWhenChanged;
  if (core_.turns.is_taken(key)) return kAfterOthers;
  const auto turn = core_.turns.take(key);
  const Object sandbox = core_.sandboxes.find(key.ns, key.name);
  if (!sandbox || !is_kept(*sandbox)) return reconcile::kWhenChanged;
  if (has_lost_its_state(core_, *sandbox)) return end_lost(*sandbox);
  if (state_of(*sandbox) != State::running) return reconcile::kWhenChanged;
  const auto end = end_at(*sandbox);
  // First: whom nobody can reach any more comes to his end all the same.
  if (end && *end <= core_.now()) return end_its_time(*sandbox);
  keep_outfit(*sandbox);
  if (!end) return reconcile::kWhenChanged;
  return std::max(*end - core_.now(), Duration::zero());
}

void Keeper::keep_outfit(const Json& sandbox) {
  const Object pod = core_.find_pod(sandbox);
  if (!pod || model::is_deleting(*pod) || !core_.outfitter().can_outfit(*pod)) return;
  if (core_.outfitted.has(model::key_of(sandbox), container_of(*pod))) return;
  outfit_pod(core_, sandbox, *pod, read_environment(core_, sandbox));
}

// The Sandbox controller does so too, up to two seconds later: `shutdownTime` has whole seconds.
// For those this API would say that it is gone, and the gateway would still let everybody in.
void Keeper::end_now(const Json& sandbox) {
  try {
    kill(core_, sandbox, model::resource_version_of(sandbox));
  } catch (const Refusal&) {
    // Somebody was faster.
  }
}

void Keeper::pause_now(const Json& sandbox) {
  const bool is_files = model::annotation_of(sandbox, kTimeoutPauseAnnotation) == "files";
  try {
    if (is_files && pause_files(sandbox)) return;
    pause(core_, sandbox, Keeps::memory, model::resource_version_of(sandbox));
  } catch (const Refusal& refusal) {
    // Where it cannot be paused, today or ever, it would run for good.
    if (refusal.status() != 501) throw;
    log::warning("a sandbox that cannot be paused ends",
                 {{"sandbox", model::key_of(sandbox).text()}, {"why", refusal.what()}});
    end_now(sandbox);
  }
}

// False: they cannot be kept as they are, however often one tries. Its time is over all the same.
bool Keeper::pause_files(const Json& sandbox) {
  try {
    pause(core_, sandbox, Keeps::files, model::resource_version_of(sandbox));
    return true;
  } catch (const model::StatusError&) {
    throw;
  } catch (const Error& error) {
    if (error.code() != Code::invalid) throw;
    log::warning("a sandbox's files cannot be kept alone: it is paused with its memory",
                 {{"sandbox", model::key_of(sandbox).text()}, {"why", error.what()}});
    return false;
  }
}

// It would go on as if nothing were wrong, with none of its files: an engine that was told to end
// everything has done so, a machine that was switched off too.
reconcile::Next Keeper::end_lost(const Json& sandbox) {
  log::warning("a sandbox whose container is gone ends",
               {{"sandbox", model::key_of(sandbox).text()},
                {"had", model::annotation_of(sandbox, kContainerAnnotation)}});
  return if_unchanged([&] { end_now(sandbox); });
}

reconcile::Next Keeper::end_its_time(const Json& sandbox) {
  return if_unchanged([&] {
    if (pauses_at_end(sandbox))
      pause_now(sandbox);
    else
      end_now(sandbox);
  });
}

}  // namespace hearth::e2b
