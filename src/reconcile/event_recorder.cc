#include "reconcile/event_recorder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/id.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "base/thread_rank.h"
#include "base/time_text.h"
#include "client/kinds.h"
#include "model/meta.h"

namespace hearth::reconcile {
namespace {

// The same event within this time is a series.
constexpr Duration kSeriesTime = std::chrono::minutes(6);
// How many events are remembered for that.
constexpr std::size_t kMostRemembered = 4096;
// What the API allows.
constexpr std::size_t kMostNoteBytes = 1024;
constexpr std::size_t kMostWordBytes = 128;
constexpr std::size_t kMostNameBytes = 230;
constexpr Duration kFarewell = std::chrono::seconds(1);

// No longer than `most`, and no character torn apart.
std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return std::string(text.substr(0, most));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

// An event that waits: new, or another of a series.
struct Waiting {
  std::string id;  // what makes two events the same
  model::Json regarding;
  EventType type = EventType::normal;
  std::string reason;
  std::string action;
  std::string note;
  Time time;
};

struct Written {
  std::string ns;
  std::string name;
  unsigned count = 1;
  Time last;
};

model::Json reference_to(const model::Json& object) {
  model::JsonObject reference;
  const auto put = [&](std::string_view key, std::string_view value) {
    if (!value.empty()) reference[key] = value;
  };
  put("apiVersion", model::text_at(object, {"apiVersion"}));
  put("kind", model::text_at(object, {"kind"}));
  put("name", model::name_of(object));
  put("namespace", model::namespace_of(object));
  put("uid", model::uid_of(object));
  put("resourceVersion", model::resource_version_of(object));
  return reference;
}

std::string id_of(const model::Json& about, EventType type, std::string_view reason,
                  std::string_view action, std::string_view note) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", model::text_at(about, {"kind"}),
                     model::key_of(about).text(), model::uid_of(about),
                     type == EventType::warning ? "w" : "n", reason, action, note);
}

}  // namespace

struct EventRecorder::State {
  State(client::Client& api, const Clock& time, EventRecorderOptions given)
      : client(api), clock(time), options(std::move(given)), tokens(options.burst) {
    if (options.instance.empty()) options.instance = options.controller + "-" + host_name();
    options.instance = shortened(options.instance, kMostWordBytes);
    filled = clock.now();
  }

  bool may_write_locked();
  void run(const std::stop_token& stop);
  void write(const Waiting& event);
  void create(const Waiting& event);
  bool extend(Written& written, const Waiting& event);
  void forget_old(Time now);

  client::Client& client;
  const Clock& clock;
  EventRecorderOptions options;

  std::mutex mutex;  // guards down to the thread's own
  std::condition_variable_any changed;
  std::condition_variable idle;
  std::deque<Waiting> waiting;
  bool is_writing = false;
  unsigned flushers = 0;
  double tokens;
  Time filled;
  std::uint64_t dropped = 0;

  // The thread's own: by id, and who was last heard of when, the oldest first.
  std::map<std::string, Written> written;
  std::deque<std::pair<Time, std::string>> heard;
  std::jthread thread;
};

// A bucket that fills by `per_second`.
bool EventRecorder::State::may_write_locked() {
  const Time now = clock.now();
  const double seconds = std::chrono::duration<double>(now - filled).count();
  filled = now;
  tokens = std::min<double>(options.burst, tokens + std::max(0.0, seconds) * options.per_second);
  if (tokens < 1) return false;
  tokens -= 1;
  return true;
}

void EventRecorder::State::run(const std::stop_token& stop) {
  name_thread("events");
  step_back();
  std::unique_lock lock(mutex);
  Deadline farewell = Deadline::never();
  while (true) {
    if (waiting.empty()) {
      changed.wait(lock, stop, [this] { return !waiting.empty(); });
      changed.wait_for(lock, stop, options.pause, [this] { return flushers > 0; });
    }
    if (stop.stop_requested() && farewell.is_never()) farewell = Deadline::after(kFarewell);
    if (waiting.empty() || farewell.passed()) break;
    const Waiting event = std::move(waiting.front());
    waiting.pop_front();
    is_writing = true;
    lock.unlock();
    bool is_lost = false;
    try {
      write(event);
    } catch (const std::exception& error) {
      is_lost = true;
      log::debug("an event could not be written",
                 {{"about", model::key_of(model::Json{{"metadata", event.regarding}}).text()},
                  {"reason", error.what()}});
    }
    lock.lock();
    is_writing = false;
    if (is_lost) ++dropped;
    idle.notify_all();
  }
  dropped += waiting.size();
  waiting.clear();
  idle.notify_all();
}

void EventRecorder::State::write(const Waiting& event) {
  forget_old(event.time);
  const auto found = written.find(event.id);
  if (found != written.end() && extend(found->second, event)) return;
  create(event);
}

void EventRecorder::State::create(const Waiting& event) {
  const std::string time = format_rfc3339(event.time, 6);
  const std::string_view about = model::text_at(event.regarding, {"name"});
  std::string ns(model::text_at(event.regarding, {"namespace"}));
  if (ns.empty()) ns = "default";
  const std::string name = shortened(about, kMostNameBytes) + "." + random_hex(8);
  const model::Json object = {
      {"apiVersion", "events.k8s.io/v1"},
      {"kind", "Event"},
      {"metadata", {{"name", name}, {"namespace", ns}}},
      {"eventTime", time},
      {"reportingController", options.controller},
      {"reportingInstance", options.instance},
      {"action", event.action},
      {"reason", event.reason},
      {"regarding", event.regarding},
      {"note", event.note},
      {"type", event.type == EventType::warning ? "Warning" : "Normal"},
  };
  client.create(client::kEvents, object);
  written[event.id] = {.ns = ns, .name = name, .count = 1, .last = event.time};
  heard.emplace_back(event.time, event.id);
}

// False: the first of the series is gone.
bool EventRecorder::State::extend(Written& first, const Waiting& event) {
  const model::Json patch = {
      {"series",
       {{"count", first.count + 1}, {"lastObservedTime", format_rfc3339(event.time, 6)}}}};
  try {
    client.patch(client::kEvents, first.ns, first.name, client::PatchKind::merge, patch);
  } catch (const model::StatusError& error) {
    if (error.status().code != 404) throw;
    return false;
  }
  ++first.count;
  first.last = event.time;
  heard.emplace_back(event.time, event.id);
  return true;
}

// A look at the oldest, not at all: thousands of pods that start and end have an event each.
void EventRecorder::State::forget_old(Time now) {
  while (!heard.empty() && now - heard.front().first > kSeriesTime) {
    const auto found = written.find(heard.front().second);
    if (found != written.end() && found->second.last == heard.front().first) written.erase(found);
    heard.pop_front();
  }
  if (heard.size() < kMostRemembered) return;
  written.clear();
  heard.clear();
}

EventRecorder::EventRecorder(client::Client& client, const Clock& clock,
                             EventRecorderOptions options)
    : state_(std::make_unique<State>(client, clock, std::move(options))) {
  if (state_->options.is_silent) return;
  state_->thread =
      std::jthread([state = state_.get()](const std::stop_token& stop) { state->run(stop); });
}

EventRecorder::~EventRecorder() = default;

void EventRecorder::record(const model::Json& about, EventType type, std::string_view reason,
                           std::string_view action, std::string note) {
  if (state_->options.is_silent) return;
  note = shortened(note, kMostNoteBytes);
  Waiting event{.id = id_of(about, type, reason, action, note),
                .regarding = reference_to(about),
                .type = type,
                .reason = shortened(reason, kMostWordBytes),
                .action = shortened(action, kMostWordBytes),
                .note = std::move(note),
                .time = state_->clock.now()};
  const std::lock_guard lock(state_->mutex);
  if (state_->waiting.size() >= state_->options.most_waiting || !state_->may_write_locked()) {
    ++state_->dropped;
    return;
  }
  state_->waiting.push_back(std::move(event));
  if (state_->waiting.size() == 1) state_->changed.notify_one();
}

void EventRecorder::flush() {
  std::unique_lock lock(state_->mutex);
  ++state_->flushers;
  state_->changed.notify_one();
  state_->idle.wait(lock, [this] { return state_->waiting.empty() && !state_->is_writing; });
  --state_->flushers;
}

std::uint64_t EventRecorder::dropped() const {
  const std::lock_guard lock(state_->mutex);
  return state_->dropped;
}

}  // namespace hearth::reconcile
