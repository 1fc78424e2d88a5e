// How containers end: by themselves, because something asks for it, or with their pod.
#include <signal.h>

#include <algorithm>

#include "base/error.h"
#include "base/time_text.h"
#include "client/kinds.h"
#include "guest/client.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"
#include "node/admission.h"
#include "node/keeper.h"
#include "node/sandbox_ids.h"

namespace hearth::node {
namespace {

constexpr int kSignalBase = 128;
// A termination message, and what of the log may stand in for it.
constexpr std::uint32_t kMostMessage = 4096;
constexpr std::uint32_t kMostLogInstead = 2048;
constexpr std::size_t kMostLinesInstead = 80;

// The end of what it wrote, line by line.
std::string last_words(guest::Connection& guest) {
  std::string text;
  guest.read_log({}, [&](const guest::Output& piece) {
    text += piece.bytes;
    if (text.size() > kMostLogInstead) text.erase(0, text.size() - kMostLogInstead);
    return true;
  });
  std::size_t lines = 0;
  for (std::size_t i = text.size(); i > 0; --i)
    if (text[i - 1] == '\n' && ++lines > kMostLinesInstead) return text.substr(i);
  return text;
}

// What the container left in its file for this; or of its log, if it wants that.
std::string termination_message(const Json& spec, guest::Connection& guest, int exit_code) {
  std::string path(model::text_at(spec, {"terminationMessagePath"}));
  if (path.empty()) path = "/dev/termination-log";
  std::string message;
  try {
    message = guest.read_file(path, kMostMessage);
  } catch (const Error&) {
    // Most write none.
  }
  const bool wants_log =
      model::text_at(spec, {"terminationMessagePolicy"}) == "FallbackToLogsOnError";
  if (message.empty() && wants_log && exit_code != 0) message = last_words(guest);
  return message;
}

// Of a warm pool, or so short a time somebody's that it does not show.
bool is_idle_member(const Json& pod) {
  return !model::label_of(pod, model::kPoolLabel).empty();
}

}  // namespace

void Keeper::note_end(const Json& pod, Container& container, const SandboxEnd& end) {
  Work& work = work_of(container);
  if (end.how == SandboxEnd::How::never_began && container.has_main) {
    // Whoever made it did not live to start its command.
    tools_.runtime.destroy(container.sandbox);
    sandboxes_.erase(container.sandbox);
    container.stage = Stage::waiting;
    container.sandbox.clear();
    container.has_lived = false;
    work = Work();
    return;
  }
  container.end = describe_end(pod, container, end);
  container.stage = Stage::terminated;
  container.is_ready = container.is_started = container.is_paused = false;
  if (container.is_replaced || container.end->finished - container.started >= kLongRun)
    container.streak = 0;
  work = Work();
}

Ending Keeper::describe_end(const Json& pod, const Container& container, const SandboxEnd& end) {
  Ending ending{
      .started = container.started, .finished = tools_.clock.now(), .sandbox = container.sandbox};
  const linux::ExitStatus& status = end.exited.status;
  if (end.how == SandboxEnd::How::vanished) {
    ending.signal = SIGKILL;
  } else {
    ending.signal = status.signal;
    ending.exit_code = status.code;
  }
  if (ending.signal != 0) ending.exit_code = kSignalBase + ending.signal;
  ending.reason = ending.exit_code == 0 ? "Completed" : "Error";
  const bool is_going = ending_since_.has_value();  // all of it, at once
  const bool may_speak = end.how == SandboxEnd::How::exited && !is_going;
  // The runtime is asked only for what makes a difference: it counts a lot to answer.
  if (ending.signal != SIGKILL && !may_speak) return ending;
  try {
    const runtime::Sandbox sandbox = tools_.runtime.get(container.sandbox);
    if (ending.signal == SIGKILL && sandbox.usage.oom_kills > 0) ending.reason = "OOMKilled";
    if (may_speak && sandbox.state == runtime::State::running) {
      guest::Connection guest(tools_.runtime.connect(container.sandbox));
      ending.message = termination_message(spec_of(pod, container), guest, ending.exit_code);
      guest.stop(Duration(0), /*leave=*/true);
    }
  } catch (const Error&) {
    // The sandbox is gone; so is what it had to say.
  }
  return ending;
}

// Tells one container to end, if nobody has, and when it will be made to.
void Keeper::begin_end(const Json& pod, Container& container, Duration grace,
                       const std::string& why) {
  Work& work = work_of(container);
  const Time kill_at = tools_.clock.now() + grace;
  work.kill_at = work.kill_at ? std::min(*work.kill_at, kill_at) : kill_at;
  if (work.is_ending) return;
  // What stands still hears nothing.
  if (container.is_paused && (!resume(pod, container) || container.stage != Stage::running)) return;
  work.is_ending = true;
  container.is_ready = false;
  // Thousands come and go with their pools, and what would be told of is gone when it is read.
  if (!why.empty() || !is_idle_member(pod))
    tell(pod, reconcile::EventType::normal, "Killing", "Killing",
         why.empty() ? fmt::format("Stopping container {}", container.name) : why);
  const Json& spec = spec_of(pod, container);
  const Json* hook = model::find(spec, {"lifecycle", "preStop"});
  if (hook == nullptr || !hook->is_object() || grace <= Duration(0))
    return tell_to_end(pod, container);
  tools_.talks.run([&prober = tools_.prober, mailbox = mailbox_, handler = *hook, spec, grace,
                    sandbox = container.sandbox, address = known_.address] {
    const ProbeTarget target{.sandbox = sandbox, .address = address, .container = spec};
    const ProbeResult result = prober.run_hook(handler, target, grace);
    mailbox->post(Hooked{.sandbox = sandbox, .is_stop = true, .result = result});
  });
}

void Keeper::tell_to_end(const Json& pod, Container& container) {
  Work& work = work_of(container);
  if (work.is_told) return;
  work.is_told = true;
  if (!container.has_main) {
    // Nothing in it can be asked.
    tools_.ends.forget(container.sandbox);
    return note_end(pod, container, {.how = SandboxEnd::How::exited});
  }
  tools_.ends.signal(container.sandbox, SIGTERM);
}

void Keeper::kill_overdue(const Json& pod) {
  for (Container& container : known_.containers) {
    Work& work = work_of(container);
    if (container.stage != Stage::running || !work.kill_at) continue;
    if (!is_past(*work.kill_at)) continue;
    tell_to_end(pod, container);
    if (container.stage != Stage::running) continue;
    if (!tools_.ends.signal(container.sandbox, SIGKILL)) continue;
    // Processes die of it as soon as the kernel lets them: not at once on a slow disk.
    work.kill_at = tools_.clock.now() + std::chrono::seconds(1);
    look_at(*work.kill_at);
  }
}

// Containers whose image is not the one that the pod asks for now.
void Keeper::end_changed(const Json& pod) {
  if (known_.is_ending) return;
  for (Container& container : known_.containers) {
    if (container.stage != Stage::running || container.kind == Kind::init) continue;
    if (container.is_replaced) continue;
    if (model::text_at(spec_of(pod, container), {"image"}) == container.image) continue;
    container.is_replaced = true;
    begin_end(pod, container, grace_of(pod),
              fmt::format("Container {} definition changed, will be restarted", container.name));
  }
}

// Sidecars go last, and in the opposite order of their coming.
void Keeper::end_rest(const Json& pod, Duration grace) {
  bool is_any = false;
  for (Container& container : known_.containers) {
    if (container.stage != Stage::running || container.kind == Kind::sidecar) continue;
    begin_end(pod, container, grace, {});
    is_any |= container.stage == Stage::running;
  }
  for (auto container = known_.containers.rbegin();
       container != known_.containers.rend() && !is_any; ++container) {
    if (container->stage != Stage::running) continue;
    begin_end(pod, *container, grace, {});
    is_any = container->stage == Stage::running;
  }
}

void Keeper::note_deadline(const Json& pod) {
  const auto seconds = model::number_at(pod, {"spec", "activeDeadlineSeconds"});
  if (!seconds || known_.is_ending || !known_.failure.empty()) return;
  if (!is_past(known_.started + std::chrono::seconds(*seconds))) return;
  known_.failure = "DeadlineExceeded";
  known_.failure_message = "Pod was active on the node longer than the specified deadline";
  tell(pod, reconcile::EventType::normal, known_.failure, "Killing", known_.failure_message);
}

// What has begun was admitted, whoever did it.
void Keeper::note_rejection(const Json& pod) {
  if (known_.is_ending || !known_.failure.empty() || !sandboxes_.empty()) return;
  const auto rejection = rejection_of(pod);
  if (!rejection) return;
  known_.failure = rejection->reason;
  known_.failure_message = fmt::format("Pod was rejected: {}", rejection->message);
  tell(pod, reconcile::EventType::warning, rejection->reason, "Admitting", rejection->message);
}

bool Keeper::is_anything_running() const {
  return std::ranges::any_of(known_.containers, [](const Container& container) {
    return container.stage == Stage::running;
  });
}

void Keeper::end_pod(const Json& pod) {
  if (is_removed_) return;
  known_.is_ending = true;
  if (!ending_since_) ending_since_ = tools_.clock.now();
  const auto seconds = model::number_at(pod, {"metadata", "deletionGracePeriodSeconds"});
  const Time kill_at = *ending_since_ + std::chrono::seconds(seconds.value_or(0));
  if (tools_.clock.now() < kill_at) {
    end_rest(pod, kill_at - tools_.clock.now());
    look_at(kill_at);
    if (is_anything_running()) return;
  }
  clear_away();
  look_at_.reset();
  const auto* finalizers = model::array_at(pod, {"metadata", "finalizers"});
  if (finalizers != nullptr && !finalizers->empty()) {
    for (Container& container : known_.containers)
      if (container.stage == Stage::running)
        note_end(pod, container, {.how = SandboxEnd::How::vanished});
    write_status(pod);
  }
  try {
    tools_.client.remove(client::kPods, key_.ns, key_.name, {.uid = uid_, .grace_seconds = 0});
  } catch (const model::StatusError& error) {
    if (error.status().code != 404 && error.status().code != 409) throw;
  }
  is_removed_ = true;
}

void Keeper::clear_away() {
  for (const std::string& id : std::vector(sandboxes_.begin(), sandboxes_.end())) {
    tools_.ends.forget(id);
    tools_.runtime.destroy(id);
    sandboxes_.erase(id);
  }
  for (const std::string& volume : std::exchange(volumes_, {})) {
    try {
      tools_.runtime.remove_volume(volume);
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
    }
  }
  tools_.images.forget(uid_);
}

}  // namespace hearth::node
