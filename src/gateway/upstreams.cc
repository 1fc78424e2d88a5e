#include "gateway/upstreams.h"

#include <algorithm>
#include <utility>

namespace hearth::gateway {

Upstreams::Upstreams(const Limits& limits, std::function<void(UpstreamPtr)> bury)
    : limits_(limits), bury_(std::move(bury)) {}

Upstreams::~Upstreams() = default;

UpstreamPtr Upstreams::take(UpstreamKey key) {
  const auto at = idle_.find(key.number());
  if (at == idle_.end() || at->second.empty()) return nullptr;
  UpstreamPtr taken = std::move(at->second.back());
  at->second.pop_back();  // the empty list stays: it is needed again in a moment, or swept
  --size_;
  return taken;
}

void Upstreams::keep(UpstreamPtr upstream, std::int64_t now) {
  auto& list = idle_[upstream->key.number()];
  if (size_ >= limits_.idle_upstreams || list.size() >= limits_.idle_per_port) {
    upstream->close();
    bury_(std::move(upstream));
    return;
  }
  upstream->is_kept = true;
  upstream->idle_since = now;
  upstream->set_owner(*this);
  list.push_back(std::move(upstream));
  ++size_;
}

void Upstreams::sweep(std::int64_t now) {
  const auto patience =
      std::chrono::duration_cast<std::chrono::milliseconds>(limits_.idle_upstream).count();
  for (auto at = idle_.begin(); at != idle_.end();) {
    auto& list = at->second;
    std::size_t old = 0;  // the oldest are first
    while (old < list.size() && list[old]->idle_since + patience <= now) ++old;
    for (std::size_t i = 0; i < old; ++i) list[i]->close();
    size_ -= old;
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(old));
    at = list.empty() ? idle_.erase(at) : std::next(at);
  }
}

void Upstreams::clear() {
  idle_.clear();
  size_ = 0;
}

void Upstreams::on_ready(Endpoint& endpoint) {
  if (!endpoint.can_read()) return;  // only room to write
  const auto list = idle_.find(static_cast<Upstream&>(endpoint).key.number());
  if (list == idle_.end()) return;
  const auto at = std::ranges::find_if(
      list->second, [&](const UpstreamPtr& one) { return one.get() == &endpoint; });
  if (at == list->second.end()) return;
  endpoint.close();
  bury_(std::move(*at));
  list->second.erase(at);
  --size_;
}

}  // namespace hearth::gateway
