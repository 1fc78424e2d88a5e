#include "client/watch_cache.h"

#include <algorithm>
#include <utility>

#include "base/cancel.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "base/thread_rank.h"
#include "client/backoff_internal.h"
#include "model/selector.h"

namespace hearth::client {
namespace {

// A server that does not know streaming lists may never say that one is over.
constexpr Duration kStreamingPatience = std::chrono::minutes(1);

// A turn that lasts as long was no failure: what comes after it need not wait.
constexpr Duration kSteady = std::chrono::seconds(10);

std::string key_of(std::string_view ns, std::string_view name) {
  return fmt::format("{}/{}", ns, name);
}

std::string key_of(const Json& object) {
  const std::string_view name = model::text_at(object, {"metadata", "name"});
  if (name.empty()) fail(Code::invalid, "the server sent an object without a name");
  return key_of(model::text_at(object, {"metadata", "namespace"}), name);
}

std::string version_of(const Json& object) {
  return std::string(model::text_at(object, {"metadata", "resourceVersion"}));
}

std::string_view uid_of(const Object& object) {
  return model::text_at(*object, {"metadata", "uid"});
}

bool is_end_of_initial_events(const Json& bookmark) {
  return model::text_at(bookmark, {"metadata", "annotations", "k8s.io/initial-events-end"}) ==
         "true";
}

void note_failure(const Error& error) {
  log::debug("a watch failed", {{"reason", error.what()}});
}

Object share(Json&& object) {
  return std::make_shared<const Json>(std::move(object));
}

// Handlers are others' code: one that throws must not end the cache.
template <typename F, typename... Args>
void call(const F& handler, const Args&... args) {
  if (!handler) return;
  try {
    handler(args...);
  } catch (const std::exception& error) {
    log::error("a handler of a watch cache failed", {{"reason", error.what()}});
  }
}

}  // namespace

std::vector<std::string> owner_uids(const Json& object) {
  std::vector<std::string> uids;
  const model::JsonArray* owners = model::array_at(object, {"metadata", "ownerReferences"});
  if (!owners) return uids;
  for (const Json& owner : *owners) {
    if (std::string_view uid = model::text_at(owner, {"uid"}); !uid.empty()) uids.emplace_back(uid);
  }
  return uids;
}

// What the thread knows about where it is.
struct WatchCache::Round {
  std::string version;        // to go on from; empty: everything is to be read anew
  bool may_stream = true;     // the server has not refused a streaming list
  bool is_list_next = false;  // the last streaming list did not come to its end
  bool is_initial = false;    // a streaming list is under way
  Objects arriving;           // of it
};

WatchCache::WatchCache(Client& client, ResourceId resource, WatchCacheOptions options)
    : client_(client), resource_(std::move(resource)), options_(std::move(options)) {
  for (const auto& [name, function] : options_.indexes) indexes_[name];
}

WatchCache::~WatchCache() {
  stop();
}

void WatchCache::add_handlers(CacheHandlers handlers) {
  HEARTH_ASSERT(!thread_.joinable());
  handlers_.push_back(std::move(handlers));
}

void WatchCache::add_index(std::string name, const IndexFunction& function) {
  HEARTH_ASSERT(!thread_.joinable());
  indexes_[name];
  options_.indexes.try_emplace(std::move(name), function);
}

void WatchCache::set_give_way(std::function<void(const std::stop_token& stop)> give_way) {
  HEARTH_ASSERT(!thread_.joinable());
  give_way_ = std::move(give_way);
}

void WatchCache::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void WatchCache::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

bool WatchCache::is_synced() const {
  const std::lock_guard lock(mutex_);
  return is_synced_;
}

bool WatchCache::wait_synced(Duration patience, std::stop_token stop) const {
  std::unique_lock lock(mutex_);
  return synced_.wait_for(lock, std::move(stop), patience, [this] { return is_synced_; });
}

Object WatchCache::find(std::string_view ns, std::string_view name) const {
  const std::string key = key_of(ns, name);
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

std::vector<Object> WatchCache::list(std::string_view ns) const {
  const std::string prefix = ns.empty() ? "" : key_of(ns, "");
  std::vector<Object> found;
  const std::lock_guard lock(mutex_);
  for (auto at = objects_.lower_bound(prefix); at != objects_.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    found.push_back(at->second);
  }
  return found;
}

std::vector<Object> WatchCache::select(const model::LabelSelector& selector,
                                       std::string_view ns) const {
  std::vector<Object> found = list(ns);
  std::erase_if(found,
                [&](const Object& object) { return !selector.matches(model::labels_of(*object)); });
  return found;
}

std::vector<Object> WatchCache::find_by_index(std::string_view index,
                                              std::string_view value) const {
  std::vector<Object> found;
  const std::lock_guard lock(mutex_);
  const auto known = indexes_.find(index);
  if (known == indexes_.end()) fail(Code::internal, "a cache has no index '{}'", index);
  const auto keys = known->second.find(value);
  if (keys == known->second.end()) return found;
  for (const std::string& key : keys->second) found.push_back(objects_.find(key)->second);
  return found;
}

void WatchCache::run(const std::stop_token& stop) {
  name_thread("watch " + resource_.plural);
  step_back();  // who has just written is to be answered first
  Round round;
  Backoff backoff(options_.first_pause, options_.most_pause);
  while (!stop.stop_requested()) {
    const auto began = std::chrono::steady_clock::now();
    bool has_failed = true;
    Duration asked_to_wait{};
    try {
      turn(round, stop);
      has_failed = false;
    } catch (const model::StatusError& error) {
      if (error.status().code != 429) round.version.clear();
      asked_to_wait = std::chrono::seconds(std::clamp(error.status().retry_after_seconds, 0, 60));
      note_failure(error);
    } catch (const Error& error) {
      // A server that cannot be reached has not forgotten where we were.
      const bool is_away = error.code() == Code::unavailable || error.code() == Code::timeout;
      if (!is_away) round.version.clear();
      note_failure(error);
    }
    if (std::chrono::steady_clock::now() - began >= kSteady) {
      backoff.reset();
      if (!has_failed) continue;
    }
    sleep_for(stop, asked_to_wait + backoff.next());
  }
}

// Reads everything anew if need be, then follows one watch to its end.
void WatchCache::turn(Round& round, const std::stop_token& stop) {
  const bool is_anew = round.version.empty();
  round.is_initial = is_anew && round.may_stream && !std::exchange(round.is_list_next, false);
  round.arriving.clear();
  // Whatever keeps a streaming list from ending: a list works with every server.
  round.is_list_next = round.is_initial;
  if (is_anew && !round.is_initial) list_anew(round);
  try {
    return follow(round, stop);
  } catch (const model::StatusError& error) {
    const unsigned code = error.status().code;
    const bool is_refused = round.is_initial && (code == 400 || code == 422);
    if (!is_refused) throw;
  }
  round.may_stream = false;
  turn(round, stop);
}

void WatchCache::follow(Round& round, const std::stop_token& stop) {
  const WatchOptions watch{
      .ns = options_.ns,
      .label_selector = options_.label_selector,
      .field_selector = options_.field_selector,
      .resource_version = round.version,
      .bookmarks = true,
      .initial_events = round.is_initial,
      .timeout = round.is_initial ? std::min(options_.watch_time, kStreamingPatience)
                                  : options_.watch_time,
  };
  const auto end = client_.watch(
      resource_, watch,
      [&](Event event) {
        if (give_way_ && !round.is_initial) give_way_(stop);
        take(round, std::move(event));
      },
      stop);
  if (end == WatchEnd::expired) round.version.clear();
}

void WatchCache::take(Round& round, Event event) {
  std::string version = version_of(*event.object);
  if (event.kind == EventKind::bookmark) {
    if (round.is_initial) {
      if (!is_end_of_initial_events(*event.object)) return;
      round.is_initial = false;
      round.is_list_next = false;
      replace_all(round.arriving);
      round.arriving.clear();
    }
    if (!version.empty()) round.version = std::move(version);
    return;
  }
  const std::string key = key_of(*event.object);
  Object object = std::move(event.object);
  const bool is_gone = event.kind == EventKind::deleted;
  if (round.is_initial) {
    if (is_gone) {
      round.arriving.erase(key);
    } else {
      round.arriving[key] = std::move(object);
    }
    return;
  }
  if (is_gone) {
    drop(key, object);
  } else {
    put(key, object);
  }
  round.version = std::move(version);
}

void WatchCache::list_anew(Round& round) {
  ListOptions options;
  options.ns = options_.ns;
  options.label_selector = options_.label_selector;
  options.field_selector = options_.field_selector;
  List list = client_.list_all(resource_, options);
  Objects now;
  for (Json& item : list.items) {
    std::string key = key_of(item);
    now[std::move(key)] = share(std::move(item));
  }
  replace_all(now);
  round.version = std::move(list.resource_version);
}

// Handlers hear of what went first: a name may have gone to another.
void WatchCache::replace_all(const Objects& now) {
  std::vector<std::pair<std::string, Object>> gone;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, object] : objects_) {
      if (!now.contains(key)) gone.emplace_back(key, object);
    }
  }
  for (const auto& [key, object] : gone) drop(key, object);
  for (const auto& [key, object] : now) put(key, object);
  const std::lock_guard lock(mutex_);
  is_synced_ = true;
  synced_.notify_all();
}

void WatchCache::put(const std::string& key, const Object& now) {
  const Object before = exchange(key, now);
  if (!before) return tell_add(now);
  if (uid_of(before) != uid_of(now)) {
    // Deleted and made again while nobody looked.
    tell_delete(before);
    return tell_add(now);
  }
  const std::string version = version_of(*now);
  if (!version.empty() && version == version_of(*before)) return;
  for (const CacheHandlers& handlers : handlers_) call(handlers.on_update, before, now);
}

void WatchCache::drop(const std::string& key, const Object& last) {
  if (exchange(key, nullptr)) tell_delete(last);
}

// Returns what was there; null takes it out.
Object WatchCache::exchange(const std::string& key, Object now) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  const Object before = found == objects_.end() ? nullptr : found->second;
  for (const auto& [name, function] : options_.indexes) {
    Index& index = indexes_.find(name)->second;
    for (const std::string& value : before ? function(*before) : std::vector<std::string>{}) {
      const auto keys = index.find(value);
      if (keys == index.end()) continue;
      keys->second.erase(key);
      if (keys->second.empty()) index.erase(keys);
    }
    for (std::string& value : now ? function(*now) : std::vector<std::string>{}) {
      index[std::move(value)].insert(key);
    }
  }
  if (now) {
    objects_.insert_or_assign(key, std::move(now));
  } else if (found != objects_.end()) {
    objects_.erase(found);
  }
  return before;
}

void WatchCache::tell_add(const Object& now) const {
  for (const CacheHandlers& handlers : handlers_) call(handlers.on_add, now);
}

void WatchCache::tell_delete(const Object& last) const {
  for (const CacheHandlers& handlers : handlers_) call(handlers.on_delete, last);
}

}  // namespace hearth::client
