#include "e2b/waits.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

#include "net/workers.h"

namespace hearth::e2b {

std::uint64_t version_number(const model::Json& object) {
  const std::string_view text = model::resource_version_of(object);
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

IsSo has_version_of(const model::Json& written) {
  return [version = version_number(written)](const model::Json* object) {
    return object != nullptr && version_number(*object) >= version;
  };
}

void CacheWaits::listen() {
  cache_.add_handlers({
      .on_add = [this](const client::Object& now) { tell(*now, now); },
      .on_update = [this](const client::Object&, const client::Object& now) { tell(*now, now); },
      .on_delete = [this](const client::Object& last) { tell(*last, nullptr); },
  });
}

void CacheWaits::tell(const model::Json& seen, const client::Object& now) {
  std::vector<std::shared_ptr<void>> let_go;  // after the lock
  const std::string key = model::key_of(seen).text();
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
  version_ = std::max(version_, version_number(seen));
  advanced_.notify_all();
  while (!kept_.empty() && kept_.begin()->first <= version_) {
    let_go.push_back(std::move(kept_.begin()->second));
    kept_.erase(kept_.begin());
  }
}

bool CacheWaits::has_told(std::uint64_t version) const {
  const std::lock_guard lock(mutex_);
  return version_ >= version;
}

void CacheWaits::catch_up(std::uint64_t version, Duration patience) {
  std::unique_lock lock(mutex_);
  if (version_ >= version) return;
  const net::Workers::Aside aside;
  advanced_.wait_for(lock, patience, [&] { return is_stopped_ || version_ >= version; });
}

void CacheWaits::keep_until(std::uint64_t version, std::shared_ptr<void> kept) {
  const std::lock_guard lock(mutex_);
  if (version_ < version) kept_.emplace(version, std::move(kept));
}

std::optional<client::Object> CacheWaits::until(const model::Key& key, const IsSo& is_so,
                                                Duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  Waiter waiter;
  std::unique_lock lock(mutex_);
  // First in line, then a look: what changes in between is heard of.
  const auto place = waiters_.emplace(key.text(), &waiter);
  std::optional<client::Object> found;
  std::optional<net::Workers::Aside> aside;  // when it is not so at once
  while (!is_stopped_ &&
         waiter.changed.wait_until(lock, deadline, [&] { return waiter.is_due || is_stopped_; })) {
    waiter.is_due = false;
    const auto told = told_.find(place->first);
    client::Object object = told == told_.end() ? nullptr : told->second;
    lock.unlock();
    const bool holds = is_so(object.get());
    lock.lock();
    if (!holds) {
      if (!aside) aside.emplace();
      continue;
    }
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
  advanced_.notify_all();
}

Turns::Turn Turns::take(const model::Key& key) {
  std::unique_lock lock(mutex_);
  if (taken_.insert(key).second) return Turn(*this, key);
  const net::Workers::Aside aside;
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
