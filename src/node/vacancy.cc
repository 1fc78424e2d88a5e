#include "node/vacancy.h"

#include <utility>

#include "node/life.h"

namespace hearth::node {

using model::Json;
using model::Key;

namespace {

// Far longer than a cache is behind: whoever has not come by then could not be made.
constexpr Duration kPromise = std::chrono::seconds(30);

}  // namespace

Vacancy::Vacancy(const client::WatchCache& nodes, client::WatchCache& bound, const Clock& clock,
                 std::string node)
    : nodes_(nodes), clock_(clock), node_(std::move(node)) {
  bound.add_handlers(
      {.on_add = [this](const client::Object& pod) { see(*pod); },
       .on_update = [this](const client::Object&, const client::Object& pod) { see(*pod); },
       .on_delete = [this](const client::Object& pod) { forget(*pod); }});
}

std::string Vacancy::take(const Json& pod) {
  const client::Object node = nodes_.find("", node_);
  if (!node) return "node(s) were not found";
  const Key key = model::key_of(pod);
  const Time now = clock_.now();
  const std::lock_guard lock(mutex_);
  std::string why = why_not(pod, *node, used_by_others(key, now));
  if (why.empty()) promised_[key] = {.resources = requests_of(pod), .end = now + kPromise};
  return why;
}

Resources Vacancy::used_by_others(const Key& key, Time now) {
  std::erase_if(promised_, [&](const auto& each) { return each.second.end <= now; });
  Resources used = sum_;
  for (const auto& [other, promise] : promised_)
    if (other != key) used += promise.resources;
  return used;
}

void Vacancy::see(const Json& pod) {
  // One that has ended takes nothing, however long people keep it to read its log.
  const bool is_over = is_terminal(model::text_at(pod, {"status", "phase"}));
  const Resources now = is_over ? Resources() : requests_of(pod);
  const Key key = model::key_of(pod);
  const std::lock_guard lock(mutex_);
  promised_.erase(key);
  Resources& before = seen_[key];
  sum_ -= std::exchange(before, now);
  sum_ += now;
}

void Vacancy::forget(const Json& pod) {
  const std::lock_guard lock(mutex_);
  const auto found = seen_.find(model::key_of(pod));
  if (found == seen_.end()) return;
  sum_ -= found->second;
  seen_.erase(found);
}

}  // namespace hearth::node
