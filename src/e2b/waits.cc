#include "e2b/waits.h"

#include <charconv>
#include <cstdint>
#include <utility>

namespace hearth::e2b {
namespace {

// Versions are numbers that rise; 0 for what is none.
std::uint64_t version_number(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

bool is_at_least(const model::Json& object, std::string_view resource_version) {
  return version_number(model::resource_version_of(object)) >= version_number(resource_version);
}

IsSo has_version_of(const model::Json& written) {
  return [version = std::string(model::resource_version_of(written))](const model::Json* object) {
    return object != nullptr && is_at_least(*object, version);
  };
}

void CacheWaits::listen() {
  const auto put = [this](const client::Object& now) { tell(model::key_of(*now).text(), now); };
  cache_.add_handlers({
      .on_add = put,
      .on_update = [put](const client::Object&, const client::Object& now) { put(now); },
      .on_delete =
          [this](const client::Object& last) { tell(model::key_of(*last).text(), nullptr); },
  });
}

void CacheWaits::tell(const std::string& key, const client::Object& now) {
  const std::lock_guard lock(mutex_);
  if (now)
    told_.insert_or_assign(key, now);
  else
    told_.erase(key);
  const auto [first, last] = waiters_.equal_range(key);
  for (auto each = first; each != last; ++each) {
    each->second->is_due = true;
    each->second->changed.notify_one();
  }
}

std::optional<client::Object> CacheWaits::until(const model::Key& key, const IsSo& is_so,
                                                Duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  Waiter waiter;
  std::unique_lock lock(mutex_);
  // First in line, then a look: what changes in between is heard of.
  const auto place = waiters_.emplace(key.text(), &waiter);
  std::optional<client::Object> found;
  while (!is_stopped_ &&
         waiter.changed.wait_until(lock, deadline, [&] { return waiter.is_due || is_stopped_; })) {
    waiter.is_due = false;
    const auto told = told_.find(place->first);
    client::Object object = told == told_.end() ? nullptr : told->second;
    lock.unlock();
    const bool holds = is_so(object.get());
    lock.lock();
    if (!holds) continue;
    found = std::move(object);
    break;
  }
  waiters_.erase(place);
  return found;
}

void CacheWaits::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  for (const auto& [key, waiter] : waiters_) waiter->changed.notify_one();
}

Turns::Turn Turns::take(const model::Key& key) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return taken_.insert(key).second; });
  return Turn(*this, key);
}

bool Turns::is_taken(const model::Key& key) const {
  const std::lock_guard lock(mutex_);
  return taken_.contains(key);
}

void Turns::end(const model::Key& key) {
  const std::lock_guard lock(mutex_);
  taken_.erase(key);
  changed_.notify_all();
}

}  // namespace hearth::e2b
