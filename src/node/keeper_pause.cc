// A pod that is told to stand still: its containers are frozen, and what waits for them waits.
#include <algorithm>

#include "base/error.h"
#include "guest/client.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "node/keeper.h"

namespace hearth::node {
namespace {

constexpr std::string_view kMemory = "memory";  // stays where it is
// Before one that would not stand still, or not go on, is told again.
constexpr Duration kRetryPause = std::chrono::seconds(1);

}  // namespace

bool Keeper::wants_pause(const Json& pod) const {
  return !known_.is_ending && model::annotation_of(pod, model::kPauseAnnotation) == kMemory;
}

// Makes its containers stand still or go on, as the pod says.
void Keeper::keep_pause(const Json& pod) {
  const bool is_wanted = wants_pause(pod);
  bool is_done = true;
  for (Container& container : known_.containers) {
    if (container.stage != Stage::running || container.is_paused == is_wanted) continue;
    if (is_wanted && work_of(container).is_ending) {
      is_done = false;  // it ends as it was told to
      continue;
    }
    is_done &= is_wanted ? pause(pod, container) : resume(pod, container);
  }
  known_.is_paused = is_wanted && is_done;
}

bool Keeper::pause(const Json& pod, Container& container) {
  try {
    tools_.runtime.pause(container.sandbox);
  } catch (const Error& error) {
    // One that has ended says so itself.
    if (error.code() == Code::not_found || error.code() == Code::unavailable) return false;
    return try_later(pod, "FailedPause", "Pausing", container, error);
  }
  container.is_paused = true;
  Work& work = work_of(container);
  ++work.round;  // what was asked of it is not answered, or late
  work.is_probing = false;
  tell(pod, reconcile::EventType::normal, "Paused", "Pausing",
       fmt::format("Container {} stands still", container.name));
  return true;
}

bool Keeper::resume(const Json& pod, Container& container) {
  try {
    tools_.runtime.resume(container.sandbox);
  } catch (const Error& error) {
    if (error.code() != Code::not_found && error.code() != Code::unavailable)
      return try_later(pod, "FailedResume", "Resuming", container, error);
    note_end(pod, container, {.how = SandboxEnd::How::vanished});
    return true;
  }
  container.is_paused = false;
  Work& work = work_of(container);
  // What it was asked before it stood still says nothing about it now.
  ProbeState probes(spec_of(pod, container), container.started, container.is_started);
  if (probes.has_probes()) {
    if (!work.is_hooked) container.is_ready = probes.is_ready();
    work.probes.emplace(std::move(probes));
  }
  tell(pod, reconcile::EventType::normal, "Resumed", "Resuming",
       fmt::format("Container {} goes on", container.name));
  if (work.is_unwatched) watch_again(pod, container);
  return true;
}

// One that stood still when it was taken over could not be asked for its end.
void Keeper::watch_again(const Json& pod, Container& container) {
  work_of(container).is_unwatched = false;
  try {
    watch_end(container.sandbox, guest::Connection(tools_.runtime.connect(container.sandbox)),
              container.has_main);
  } catch (const Error&) {
    note_end(pod, container, {.how = SandboxEnd::How::vanished});
  }
}

bool Keeper::try_later(const Json& pod, std::string_view reason, std::string_view action,
                       const Container& container, const Error& error) {
  tell(pod, reconcile::EventType::warning, reason, action,
       fmt::format("Container {}: {}", container.name, error.what()));
  look_at(tools_.clock.now() + kRetryPause);
  return false;
}

}  // namespace hearth::node
