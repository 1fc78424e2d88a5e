#include <algorithm>
#include <ranges>
#include <utility>

#include "base/error.h"
#include "store/state_internal.h"

namespace hearth::store {
namespace {

std::size_t bytes_of(const Change& change) {
  return change.object->text.size() + change.object->tags.packed().size();
}

}  // namespace

State::State(Limits limits, Revision revision, Revision oldest)
    : limits_(limits), revision_(revision), oldest_(oldest) {
  shelves_[""];
}

void State::load(const ObjectPtr& object) {
  const std::lock_guard lock(mutex_);
  shelves_[object->key.resource].objects.insert(object);
}

void State::unload(const ObjectPtr& object) {
  const std::lock_guard lock(mutex_);
  shelves_[object->key.resource].objects.erase(object);
}

ObjectPtr State::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const Shelf* shelf = find_shelf(key.resource);
  if (shelf == nullptr) return nullptr;
  const auto found = shelf->objects.find(place_of(key));
  return found == shelf->objects.end() ? nullptr : *found;
}

Snapshot State::list(const ListQuery& query) const {
  const std::lock_guard lock(mutex_);
  const Shelf* shelf = find_shelf(query.resource);
  Snapshot snapshot;
  if (shelf != nullptr) snapshot = collect(*shelf, query, {});
  snapshot.revision = revision_;
  return snapshot;
}

std::optional<Snapshot> State::list_at(const ListQuery& query, Revision at) const {
  const std::lock_guard lock(mutex_);
  if (at > revision_) {
    fail(Code::invalid, "revision {} is still to come: the store is at {}", at, revision_.load());
  }
  if (at < oldest_) return std::nullopt;
  const Shelf* shelf = find_shelf(query.resource);
  Snapshot snapshot;
  if (shelf != nullptr) snapshot = collect(*shelf, query, differences_since(*shelf, at));
  snapshot.revision = at;
  return snapshot;
}

Revision State::oldest() const {
  const std::lock_guard lock(mutex_);
  return oldest_;
}

bool State::wait_for(Revision revision, Duration time) const {
  std::unique_lock lock(mutex_);
  return advanced_.wait_for(lock, time, [&] { return revision_ >= revision; });
}

const State::Shelf* State::find_shelf(const std::string& resource) const {
  const auto found = shelves_.find(resource);
  return found == shelves_.end() ? nullptr : &found->second;
}

// Newest first, so that the oldest change of an object has the last word.
State::Differences State::differences_since(const Shelf& shelf, Revision at) const {
  Differences then;
  for (auto it = shelf.changes.rbegin(); it != shelf.changes.rend(); ++it) {
    const Change& change = **it;
    if (change.revision <= at) break;
    then[place_of(change.object->key)] = change.previous;
  }
  return then;
}

Snapshot State::collect(const Shelf& shelf, const ListQuery& query, const Differences& then) {
  PlaceView from{query.ns ? *query.ns : std::string_view(), {}};
  bool from_included = true;
  if (query.after && PlaceView(query.after->ns, query.after->name) >= from) {
    from = {query.after->ns, query.after->name};
    from_included = false;
  }
  auto now = from_included ? shelf.objects.lower_bound(from) : shelf.objects.upper_bound(from);
  auto past = from_included ? then.lower_bound(from) : then.upper_bound(from);

  Snapshot snapshot;
  const auto add = [&](const ObjectPtr& object) {
    if (object == nullptr) return;
    if (query.limit == 0 || snapshot.objects.size() < query.limit) {
      snapshot.objects.push_back(object);
    } else {
      ++snapshot.remaining;
    }
  };
  const auto is_inside = [&](PlaceView place) { return !query.ns || place.first == *query.ns; };
  while (true) {
    const bool has_now = now != shelf.objects.end() && is_inside(ByPlace::place(*now));
    const bool has_past = past != then.end() && is_inside(past->first);
    if (!has_now && !has_past) return snapshot;
    if (has_past && (!has_now || past->first <= ByPlace::place(*now))) {
      if (has_now && past->first == ByPlace::place(*now)) ++now;
      add(past->second);
      ++past;
    } else {
      add(*now);
      ++now;
    }
  }
}

std::vector<Revision> State::publish(const std::vector<ChangePtr>& changes, Time now) noexcept {
  std::vector<ChangePtr> trimmed;  // freed without the lock
  std::vector<Watch*> woken;
  const std::lock_guard waking(wake_mutex_);
  {
    const std::lock_guard lock(mutex_);
    for (const ChangePtr& change : changes) {
      HEARTH_ASSERT(change->revision == revision_ + 1);
      apply(change);
      rouse(shelves_[change->object->key.resource], *change, woken);
      rouse(shelves_[""], *change, woken);
      revision_.store(change->revision, std::memory_order_release);
    }
    if (!changes.empty()) published_.emplace_back(now, revision_.load());
    trimmed = trim(now);
  }
  advanced_.notify_all();
  // Who came last hears first: clients come after the caches of this process, for which nobody
  // waits. And of writes that are kept together, the last is the one that is waited for.
  for (Watch* watch : std::views::reverse(woken)) watch->wake_();

  std::vector<Revision> garbage;
  for (const ChangePtr& change : trimmed) {
    // In this order: a row may never go before the one that it replaced.
    if (change->previous) garbage.push_back(change->previous->revision);
    if (change->kind == ChangeKind::deleted) garbage.push_back(change->revision);
  }
  return garbage;
}

void State::apply(const ChangePtr& change) {
  Shelf& shelf = shelves_[change->object->key.resource];
  if (change->previous) shelf.objects.erase(change->previous);
  if (change->kind != ChangeKind::deleted) shelf.objects.insert(change->object);
  shelf.changes.push_back(change);
  shelves_[""].changes.push_back(change);
  history_bytes_ += bytes_of(*change);
}

void State::rouse(const Shelf& shelf, const Change& change, std::vector<Watch*>& woken) {
  for (Watch* watch : shelf.watches) {
    if (!watch->waiting_ && !watch->is_owed_) continue;
    if (change.revision <= watch->seen_ || !watch->scope_.holds(change.object->key)) continue;
    const bool is_first = std::exchange(watch->waiting_, false);
    if (is_first) watch->seen_ = change.revision - 1;  // there was nothing for it before this one
    if (!change.news_can_wait) {
      watch->is_owed_ = false;
      woken.push_back(watch);
    } else if (is_first) {
      watch->is_owed_ = true;
      owed_.push_back(watch);
    }
  }
}

void State::tell_late() noexcept {
  const std::lock_guard waking(wake_mutex_);
  std::vector<Watch*> owed;
  {
    const std::lock_guard lock(mutex_);
    owed.swap(owed_);
    std::erase_if(owed, [](Watch* watch) { return !std::exchange(watch->is_owed_, false); });
  }
  for (Watch* watch : std::views::reverse(owed)) watch->wake_();
}

bool State::is_over(Time now) const {
  return revision_ - oldest_ > limits_.keep_changes || history_bytes_ > limits_.keep_bytes ||
         published_.front().first + limits_.keep_for < now;
}

std::vector<ChangePtr> State::trim(Time now) {
  std::vector<ChangePtr> trimmed;
  std::deque<ChangePtr>& all = shelves_[""].changes;
  while (!all.empty() && is_over(now)) {
    ChangePtr change = std::move(all.front());
    all.pop_front();
    shelves_[change->object->key.resource].changes.pop_front();
    history_bytes_ -= bytes_of(*change);
    oldest_ = change->revision;
    if (published_.front().second == oldest_) published_.pop_front();
    trimmed.push_back(std::move(change));
  }
  return trimmed;
}

void State::add(Watch& watch) {
  const std::lock_guard lock(mutex_);
  shelves_[watch.scope_.resource].watches.push_back(&watch);
}

void State::remove(Watch& watch) {
  const std::lock_guard waking(wake_mutex_);
  const std::lock_guard lock(mutex_);
  std::erase(shelves_[watch.scope_.resource].watches, &watch);
  std::erase(owed_, &watch);
}

Taken State::take(Watch& watch, std::size_t most) {
  const std::lock_guard lock(mutex_);
  Taken taken;
  if (watch.waiting_) {
    watch.seen_ = std::max(watch.seen_, revision_.load());
  } else if (watch.seen_ < oldest_) {
    taken.expired = true;
  } else {
    const std::deque<ChangePtr>& changes = shelves_[watch.scope_.resource].changes;
    auto next = std::ranges::upper_bound(changes, watch.seen_, std::ranges::less(),
                                         [](const ChangePtr& change) { return change->revision; });
    for (; next != changes.end() && taken.changes.size() < most; ++next) {
      watch.seen_ = (*next)->revision;
      if (watch.scope_.holds((*next)->object->key)) taken.changes.push_back(*next);
    }
    if (next == changes.end()) watch.seen_ = std::max(watch.seen_, revision_.load());
    watch.waiting_ = taken.changes.empty() && next == changes.end();
    watch.is_owed_ = false;
  }
  taken.up_to = watch.seen_;
  return taken;
}

Watch::Watch(State& state, Scope scope, Revision after, std::function<void()> wake)
    : state_(state), scope_(std::move(scope)), wake_(std::move(wake)), seen_(after) {
  state_.add(*this);
}

Watch::~Watch() {
  state_.remove(*this);
}

Taken Watch::take(std::size_t most) {
  return state_.take(*this, most);
}

}  // namespace hearth::store
