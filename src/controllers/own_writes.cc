#include "controllers/own_writes.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace hearth::controllers {

using model::Json;
using model::Key;

namespace {

// Versions of one kind are numbers that rise. 0 for what is none, which is older than all.
std::uint64_t version_of(const Json& object) {
  const std::string_view text = model::resource_version_of(object);
  std::uint64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  return error == std::errc() && end == text.data() + text.size() ? version : 0;
}

}  // namespace

client::Object OwnWrites::remember(const client::Answer& written) {
  const client::Object& object = written;
  const std::uint64_t version = version_of(*object);
  const std::lock_guard lock(mutex_);
  Written& entry = written_[model::key_of(*object)];
  entry.object = object;
  entry.at = clock_.now();
  if (entry.versions.empty() || entry.versions.back() < version) entry.versions.push_back(version);
  return object;
}

client::Object OwnWrites::newest(const Key& key, const client::Object& cached) {
  const std::lock_guard lock(mutex_);
  const auto found = written_.find(key);
  if (found == written_.end()) return cached;
  const Written& written = found->second;
  const bool is_behind = !cached || version_of(*cached) < version_of(*written.object);
  if (is_behind && clock_.now() - written.at <= kPatience) return written.object;
  written_.erase(found);
  return cached;
}

bool OwnWrites::is_own(const Json& object) const {
  const std::lock_guard lock(mutex_);
  const auto found = written_.find(model::key_of(object));
  return found != written_.end() &&
         std::ranges::binary_search(found->second.versions, version_of(object));
}

void OwnWrites::seen(const Json& object) {
  const std::uint64_t version = version_of(object);
  const std::lock_guard lock(mutex_);
  const auto found = written_.find(model::key_of(object));
  if (found == written_.end()) return;
  std::erase_if(found->second.versions, [&](std::uint64_t each) { return each <= version; });
  if (found->second.versions.empty()) written_.erase(found);
}

void OwnWrites::forget(const Key& key) {
  const std::lock_guard lock(mutex_);
  written_.erase(key);
}

std::size_t OwnWrites::size() const {
  const std::lock_guard lock(mutex_);
  return written_.size();
}

}  // namespace hearth::controllers
