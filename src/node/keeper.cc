#include "node/keeper.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "client/kinds.h"
#include "model/meta.h"
#include "node/pod_status.h"

namespace hearth::node {
namespace {

// A pod that runs sooner than this is never said to be waiting for it: one write instead of two.
constexpr Duration kSoon = std::chrono::milliseconds(100);
// The machine cannot wait, but a signal can be heard.
constexpr Duration kEvictionGrace = std::chrono::seconds(1);

std::uint64_t version_of(const Json& object) {
  const std::string_view text = model::resource_version_of(object);
  std::uint64_t version = 0;
  std::from_chars(text.begin(), text.end(), version);
  return version;
}

}  // namespace

void Mailbox::post(News one) {
  news.with([&](std::vector<News>& all) { all.push_back(std::move(one)); });
  wake(key);
}

Keeper::Keeper(Tools& tools, const Json& pod, const std::vector<runtime::Sandbox>& found)
    : tools_(tools),
      uid_(model::uid_of(pod)),
      key_(model::key_of(pod)),
      mailbox_(std::make_shared<Mailbox>()),
      known_(known_from_status(pod)),
      work_(known_.containers.size()),
      volumes_(pod_volume_names(pod)),
      seen_(tools.clock.now()) {
  mailbox_->key = key_;
  mailbox_->wake = tools_.wake;
  known_.host_address = tools_.host_address;
  if (known_.started == Time()) known_.started = seen_;
  if (is_terminal(model::text_at(pod, {"status", "phase"}))) known_.is_ending = true;
  adopt(pod, found);
}

Keeper::~Keeper() {
  for (const std::string& sandbox : sandboxes_) tools_.ends.forget(sandbox);
}

reconcile::Next Keeper::step(const client::Object& seen) {
  // Our own write may not have come back yet.
  const bool is_behind = written_ && version_of(*seen) < version_of(*written_);
  const client::Object now = is_behind ? written_ : seen;
  const Json& pod = *now;
  look_at_.reset();
  welcome_newcomers(pod);
  read_news(pod);
  if (model::is_deleting(pod)) {
    end_pod(pod);
  } else {
    note_rejection(pod);
    note_deadline(pod);
    keep_pause(pod);
    if (!known_.is_paused) end_changed(pod);
    if (is_through(pod, known_)) {
      known_.is_ending = true;
      end_rest(pod, known_.failure == kEvicted ? kEvictionGrace : grace_of(pod));
      // What it leaves is what the machine is short of.
      if (known_.failure == kEvicted && !is_anything_running()) clear_away();
    }
    if (!wants_pause(pod)) start_due(pod);
    kill_overdue(pod);
    probe_due(pod);
    write_status(pod);
  }
  if (!look_at_) return reconcile::kWhenChanged;
  return std::max(*look_at_ - tools_.clock.now(), Duration(0));
}

void Keeper::read_news(const Json& pod) {
  const std::vector<News> all =
      mailbox_->news.with([](std::vector<News>& news) { return std::exchange(news, {}); });
  for (const News& one : all) std::visit([&](const auto& news) { hear(pod, news); }, one);
}

void Keeper::hear(const Json& pod, const MainEnded& news) {
  Container* container = find_by_sandbox(news.sandbox);
  if (container != nullptr && container->stage == Stage::running)
    note_end(pod, *container, news.end);
}

void Keeper::hear(const Json& pod, ImageFound news) {
  Work& work = work_.at(news.container);
  work.is_downloading = false;
  if (news.outcome.image && !news.outcome.event.empty())
    tell(pod, reconcile::EventType::normal, "Pulled", "Pulling", news.outcome.event);
  work.image = std::move(news.outcome);
}

void Keeper::hear(const Json& pod, const Probed& news) {
  Container* container = find_by_sandbox(news.sandbox);
  if (container == nullptr) return;
  Work& work = work_of(*container);
  if (news.round != work.round) return;  // it was paused meanwhile
  work.is_probing = false;
  if (container->stage != Stage::running || !work.probes) return;
  work.probes->record(news.kind, news.result, tools_.clock.now());
  if (!news.result.ok)
    tell(pod, reconcile::EventType::warning, "Unhealthy", "Probing",
         fmt::format("{} probe failed: {}", to_string(news.kind), news.result.message));
  if (!work.is_hooked) {
    container->is_started = work.probes->is_started();
    container->is_ready = work.probes->is_ready() && !work.is_ending;
  }
  if (work.probes->fatal() && !work.is_ending) {
    begin_end(pod, *container, work.probes->grace(news.kind).value_or(grace_of(pod)),
              fmt::format("Container {} failed {} probe, will be restarted", container->name,
                          news.kind == ProbeKind::startup ? "startup" : "liveness"));
  }
}

void Keeper::hear(const Json& pod, const Hooked& news) {
  Container* container = find_by_sandbox(news.sandbox);
  if (container == nullptr || container->stage != Stage::running) return;
  Work& work = work_of(*container);
  if (news.is_stop) {
    if (!news.result.ok)
      tell(pod, reconcile::EventType::warning, "FailedPreStopHook", "Killing",
           fmt::format("PreStopHook failed: {}", news.result.message));
    return tell_to_end(pod, *container);
  }
  work.is_hooked = false;
  if (news.result.ok) {
    container->is_started = !work.probes || work.probes->is_started();
    container->is_ready = (!work.probes || work.probes->is_ready()) && !work.is_ending;
    return;
  }
  tell(pod, reconcile::EventType::warning, "FailedPostStartHook", "Starting",
       fmt::format("PostStartHook failed: {}", news.result.message));
  begin_end(pod, *container, Duration(0), "FailedPostStartHook");
}

void Keeper::hear(const Json& pod, const Evicted& news) {
  if (known_.is_ending || !known_.failure.empty()) return;
  known_.failure = kEvicted;
  known_.failure_message = news.message;
  tell(pod, reconcile::EventType::warning, kEvicted, "Killing", news.message);
}

void Keeper::evict(std::string message) {
  mailbox_->post(Evicted{.message = std::move(message)});
}

// Ephemeral containers come while the pod runs, and never go.
void Keeper::welcome_newcomers(const Json& pod) {
  for (Container& container : newcomers_of(pod, known_)) {
    known_.containers.push_back(std::move(container));
    work_.emplace_back();
  }
}

void Keeper::write_status(const Json& pod) {
  const bool is_new = model::array_at(pod, {"status", "containerStatuses"}) == nullptr;
  const bool is_on_its_way =
      std::ranges::any_of(work_, [](const Work& work) { return work.is_downloading; });
  if (is_new && is_on_its_way && !is_past(seen_ + kSoon)) return;
  const Json patch = status_patch(pod, make_status(pod, known_, tools_.clock.now()));
  if (patch.is_null()) return;
  try {
    written_ = std::make_shared<const Json>(
        tools_.client.patch(client::kPods, key_.ns, key_.name, client::PatchKind::strategic, patch,
                            {.subresource = "status", .manager = "hearth-node"}));
  } catch (const model::StatusError& error) {
    // It is gone, or another one has its name: the watch tells.
    if (error.status().code != 404 && error.status().code != 409) throw;
  }
}

// Whether it has come; if not, this is looked at again then.
bool Keeper::is_past(Time moment) {
  if (tools_.clock.now() >= moment) return true;
  look_at(moment);
  return false;
}

void Keeper::look_at(Time moment) {
  look_at_ = look_at_ ? std::min(*look_at_, moment) : moment;
}

void Keeper::tell(const Json& pod, reconcile::EventType type, std::string_view reason,
                  std::string_view action, std::string note) {
  tools_.events.record(pod, type, reason, action, std::move(note));
}

Container* Keeper::find_by_sandbox(std::string_view sandbox) {
  const auto found = std::ranges::find(known_.containers, sandbox, &Container::sandbox);
  return found == known_.containers.end() ? nullptr : &*found;
}

Keeper::Work& Keeper::work_of(const Container& container) {
  return work_.at(static_cast<std::size_t>(&container - known_.containers.data()));
}

}  // namespace hearth::node
