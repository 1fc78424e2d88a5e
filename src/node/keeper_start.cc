// From a container of the spec to a sandbox that runs.
#include <algorithm>

#include "base/error.h"
#include "base/on_failure.h"
#include "guest/client.h"
#include "model/containers.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "node/keeper.h"
#include "node/sandbox_ids.h"

namespace hearth::node {
namespace {

constexpr Duration kStartPatience = std::chrono::seconds(60);
// Between tries to make a container: of what may be there soon, and of what needs a person.
constexpr Duration kFirstRetry = std::chrono::milliseconds(500);
constexpr Duration kLongestRetry = std::chrono::seconds(30);
constexpr int kCannotStart = 128;
// A volume that was asked for along with its pod is there a moment later.
constexpr unsigned kSilentTries = 2;

Duration retry_pause(unsigned failures) {
  constexpr unsigned kEnough = 8;  // doublings
  return std::min<Duration>(kFirstRetry * (1 << std::min(failures, kEnough)), kLongestRetry);
}

// "10s", "2m40s": as Go writes them.
std::string pause_text(Duration pause) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(pause).count();
  return seconds < 60 ? fmt::format("{}s", seconds)
                      : fmt::format("{}m{}s", seconds / 60, seconds % 60);
}

bool is_dressed(const Json& pod, const Container& container) {
  return !model::annotation_of(pod, model::kDressAnnotation).empty() &&
         model::first_container_of(pod) == container.name;
}

}  // namespace

void Keeper::start_due(const Json& pod) {
  // One that begins may be what the next one waits for (a sidecar without probes).
  for (std::size_t rounds = 0; rounds <= known_.containers.size(); ++rounds) {
    bool is_any = false;
    for (const std::size_t i : startable(pod, known_)) {
      Container& container = known_.containers[i];
      if (!may_start(pod, container)) continue;
      start(pod, container);
      is_any |= container.stage == Stage::running && container.kind == Kind::sidecar;
    }
    if (!is_any) return;
  }
}

// Whether its time has come. A life that has ended becomes the one before.
bool Keeper::may_start(const Json& pod, Container& container) {
  Work& work = work_of(container);
  if (work.is_downloading) return false;
  if (container.stage == Stage::terminated) {
    container.before = std::exchange(container.end, std::nullopt);
    container.stage = Stage::waiting;
    container.sandbox.clear();
  }
  if (container.before && container.has_lived) {
    const Duration pause = pause_before_restart(container.streak);
    if (pause > Duration(0) && !is_past(container.before->finished + pause)) {
      back_off(pod, container, pause);
      return false;
    }
  }
  return !work.retry_at || is_past(*work.retry_at);
}

// It waits for its next life; a kubelet's words.
void Keeper::back_off(const Json& pod, Container& container, Duration pause) {
  if (container.before->reason == "StartError") {
    container.reason = "RunContainerError";
    container.message = container.before->message;
    return;
  }
  if (std::exchange(container.reason, "CrashLoopBackOff") != "CrashLoopBackOff")
    tell(pod, reconcile::EventType::warning, "BackOff", "Restarting",
         fmt::format("Back-off restarting failed container {} in pod {}_{}({})", container.name,
                     key_.name, key_.ns, uid_));
  container.message = fmt::format("back-off {} restarting failed container={} pod={}_{}({})",
                                  pause_text(pause), container.name, key_.name, key_.ns, uid_);
}

void Keeper::start(const Json& pod, Container& container) {
  if (!find_image(pod, container)) return;
  const unsigned attempt = container.attempt + (container.has_lived ? 1 : 0);
  forget_old_lives(container);
  ContainerPlan plan;
  try {
    plan = make_plan(pod, container, attempt);
  } catch (const Error& error) {
    if (error.code() == Code::unavailable) return could_not(pod, container, {}, error.what());
    return could_not(pod, container, "CreateContainerConfigError", error.what());
  }
  runtime::Runtime::Created created;
  try {
    sandboxes_.insert(plan.sandbox.id);
    created = tools_.runtime.create(plan.sandbox);
  } catch (const Error& error) {
    if (error.code() == Code::already_exists) tools_.runtime.destroy(plan.sandbox.id);
    sandboxes_.erase(plan.sandbox.id);
    if (error.code() == Code::not_found) forget_vanished();
    return could_not(pod, container, "CreateContainerError", error.what());
  }
  container.attempt = attempt;
  run_main(pod, container, std::move(plan), std::move(created));
}

// False: not yet, or never; the container says why.
bool Keeper::find_image(const Json& pod, Container& container) {
  Work& work = work_of(container);
  const Json& spec = spec_of(pod, container);
  std::optional<ImageOutcome> outcome = std::exchange(work.image, std::nullopt);
  if (!outcome) outcome = tools_.images.look(pod, spec);
  if (!outcome) {
    tell(pod, reconcile::EventType::normal, "Pulling", "Pulling",
         fmt::format("Pulling image \"{}\"", model::text_at(spec, {"image"})));
    work.is_downloading = true;
    container.reason.clear();
    const auto index = static_cast<std::size_t>(&container - known_.containers.data());
    tools_.downloads.run([&images = tools_.images, mailbox = mailbox_, pod, spec, index] {
      ImageOutcome found;
      try {
        found = images.ensure(pod, spec);
      } catch (const std::exception& error) {
        found.reason = "ErrImagePull";
        found.message = found.event = error.what();
        found.retry_after = kLongestRetry;
      }
      mailbox->post(ImageFound{.container = index, .outcome = std::move(found)});
    });
    return false;
  }
  if (outcome->image) {
    work.image = std::move(outcome);
    return true;
  }
  container.reason = outcome->reason;
  container.message = outcome->message;
  tell(pod,
       outcome->event_reason == "BackOff" ? reconcile::EventType::normal
                                          : reconcile::EventType::warning,
       outcome->event_reason, "Pulling", outcome->event);
  tell(pod, reconcile::EventType::warning, "Failed", "Pulling",
       fmt::format("Error: {}", outcome->reason));
  work.retry_at = tools_.clock.now() + outcome->retry_after;
  look_at(*work.retry_at);
  return false;
}

ContainerPlan Keeper::make_plan(const Json& pod, const Container& container, unsigned attempt) {
  const image::Image& image = *work_of(container).image->image;
  ContainerPlan plan = tools_.planner.plan(pod, spec_of(pod, container), image);
  plan.sandbox.id = name_sandbox(uid_, container.name, attempt).id();
  plan.sandbox.hostname = hostname_of(pod);
  if (!sandboxes_.empty()) plan.sandbox.joins = *sandboxes_.begin();
  if (tools_.furnish) tools_.furnish(pod, plan.sandbox);
  if (tools_.dress && is_dressed(pod, container)) tools_.dress(pod, plan.sandbox);
  plan.command.detached = true;
  plan.command.main = true;
  return plan;
}

void Keeper::run_main(const Json& pod, Container& container, ContainerPlan plan,
                      runtime::Runtime::Created created) {
  Work& work = work_of(container);
  const std::string& id = plan.sandbox.id;
  container.sandbox = id;
  container.image = model::text_at(spec_of(pod, container), {"image"});
  container.image_id = work.image->image->id;
  container.has_main = !plan.command.command.empty();
  container.has_lived = true;
  container.is_replaced = false;
  work = Work();
  if (!created.sandbox.address.empty()) known_.address = created.sandbox.address;
  plan.set_address(known_.address);
  guest::Connection guest(std::move(created.guest));
  try {
    if (container.has_main) {
      tools_.runtime.keep_log(id);
      guest.start(plan.command, {}, Deadline::after(kStartPatience));
    }
    watch_end(id, std::move(guest), container.has_main);
  } catch (const Error& error) {
    tell(pod, reconcile::EventType::warning, "Failed", "Starting",
         fmt::format("Error: {}", error.what()));
    container.stage = Stage::terminated;
    container.streak += container.before ? 1 : 0;
    container.end = Ending{.exit_code = kCannotStart,
                           .reason = "StartError",
                           .message = error.what(),
                           .finished = tools_.clock.now(),
                           .sandbox = id};
    look_at(tools_.clock.now());
    return;
  }
  begin_life(pod, container);
}

void Keeper::begin_life(const Json& pod, Container& container) {
  Work& work = work_of(container);
  const Json& spec = spec_of(pod, container);
  container.stage = Stage::running;
  container.started = tools_.clock.now();
  container.reason.clear();
  container.message.clear();
  container.end.reset();
  if (container.before) ++container.streak;
  ProbeState probes(spec, container.started);
  container.is_started = probes.is_started();
  container.is_ready = probes.is_ready();
  if (probes.has_probes()) work.probes.emplace(std::move(probes));
  if (const Json* hook = model::find(spec, {"lifecycle", "postStart"}); hook && hook->is_object()) {
    work.is_hooked = true;
    container.is_started = container.is_ready = false;
    tools_.talks.run([&prober = tools_.prober, mailbox = mailbox_, handler = *hook, spec,
                      sandbox = container.sandbox, address = known_.address] {
      const ProbeTarget target{.sandbox = sandbox, .address = address, .container = spec};
      const ProbeResult result = prober.run_hook(handler, target, std::chrono::hours(24));
      mailbox->post(Hooked{.sandbox = sandbox, .is_stop = false, .result = result});
    });
  }
  tell(pod, reconcile::EventType::normal, "Started", "Starting",
       fmt::format("Container started: {}", container.name));
}

// It stays as it is for now, and says why; without a reason it is as good as on its way.
void Keeper::could_not(const Json& pod, Container& container, std::string_view reason,
                       std::string_view message) {
  Work& work = work_of(container);
  if (!reason.empty())
    tell(pod, reconcile::EventType::warning, "Failed", "Starting",
         fmt::format("Error: {}", message));
  else if (work.failures >= kSilentTries)
    tell(pod, reconcile::EventType::warning, "FailedMount", "Mounting", std::string(message));
  container.reason = reason;
  container.message = message;
  work.retry_at = tools_.clock.now() + retry_pause(work.failures++);
  look_at(*work.retry_at);
}

// The life before this one stays for whoever asks what it said; those before it go.
void Keeper::forget_old_lives(const Container& container) {
  if (!container.has_lived) return;
  for (const std::string& id : std::vector(sandboxes_.begin(), sandboxes_.end())) {
    const auto name = parse_sandbox_name(id);
    if (!name || name->container_hash != model::name_hash(container.name)) continue;
    if (name->attempt >= container.attempt) continue;
    tools_.runtime.destroy(id);
    sandboxes_.erase(id);
  }
}

// Somebody may have removed one behind our back; nothing can join it then.
void Keeper::forget_vanished() {
  std::set<std::string> there;
  for (const runtime::Sandbox& sandbox : tools_.runtime.list()) there.insert(sandbox.id);
  std::erase_if(sandboxes_, [&](const std::string& id) { return !there.contains(id); });
}

void Keeper::probe_due(const Json& pod) {
  for (Container& container : known_.containers) {
    Work& work = work_of(container);
    if (container.stage != Stage::running || container.is_paused || !work.probes) continue;
    if (work.is_probing || work.is_hooked || work.is_ending) continue;
    const auto due = work.probes->next();
    if (!due || !is_past(due->at)) continue;
    work.is_probing = true;
    tools_.talks.run([&prober = tools_.prober, mailbox = mailbox_, kind = due->kind,
                      round = work.round, probe = *due->probe, spec = spec_of(pod, container),
                      sandbox = container.sandbox, address = known_.address] {
      const ProbeTarget target{.sandbox = sandbox, .address = address, .container = spec};
      mailbox->post(Probed{
          .sandbox = sandbox, .kind = kind, .round = round, .result = prober.probe(probe, target)});
    });
  }
}

}  // namespace hearth::node
