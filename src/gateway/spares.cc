#include "gateway/spares.h"

#include <poll.h>

#include <utility>
#include <vector>

#include "gateway/target.h"
#include "metrics/registry.h"

namespace hearth::gateway {

void Spares::count(int change) const {
  if (made_ != nullptr) made_->add(change);
}

void Spares::keep(const RoutePtr& route) {
  const bool is_new = entries_.with([&](Entries& entries) {
    return entries.size() < kMost && entries.try_emplace(route->serial, Entry{route}).second;
  });
  if (is_new) dial(route);
}

void Spares::dial(const RoutePtr& route) {
  const bool is_begun = errands_.run([this, route] {
    Dialled dialled = dialler_.dial(*route, kEnvdPort);
    entries_.with([&](Entries& entries) {
      const auto at = entries.find(route->serial);
      if (at == entries.end()) return;  // somebody has the sandbox by now, or nobody will
      if (dialled.state != DialState::connected) {
        entries.erase(at);
        return;
      }
      at->second.since = std::chrono::steady_clock::now();
      at->second.dialled = std::move(dialled);
      count(1);
    });
  });
  if (!is_begun) take(*route);
}

bool Spares::has(const Route& route) const {
  return entries_.with([&](const Entries& entries) {
    const auto at = entries.find(route.serial);
    return at != entries.end() && at->second.dialled.state == DialState::connected;
  });
}

Dialled Spares::take(const Route& route) {
  return entries_.with([&](Entries& entries) -> Dialled {
    const auto at = entries.find(route.serial);
    if (at == entries.end()) return {};
    Dialled taken = std::move(at->second.dialled);
    entries.erase(at);
    if (taken.state == DialState::connected) count(-1);
    return taken;
  });
}

void Spares::sweep(Duration age) {
  const auto oldest = std::chrono::steady_clock::now() - age;
  std::vector<Dialled> closed;  // without the lock
  std::vector<RoutePtr> old;
  entries_.with([&](Entries& entries) {
    if (entries.empty()) return;
    std::vector<Entry*> made;
    std::vector<pollfd> looks;
    for (auto& [serial, entry] : entries) {
      if (entry.dialled.state != DialState::connected) continue;
      made.push_back(&entry);
      looks.push_back(
          {.fd = entry.dialled.socket.get(), .events = POLLIN | POLLRDHUP, .revents = 0});
    }
    ::poll(looks.data(), looks.size(), 0);
    for (std::size_t i = 0; i < made.size(); ++i) {
      Entry& entry = *made[i];
      const bool is_quiet = looks[i].revents == 0;
      if (is_quiet && entry.since > oldest) continue;
      closed.push_back(std::exchange(entry.dialled, {}));
      if (is_quiet) {
        old.push_back(entry.route);
      } else {
        entries.erase(entry.route->serial);
      }
    }
    count(-static_cast<int>(closed.size()));
  });
  for (const RoutePtr& route : old) dial(route);
}

}  // namespace hearth::gateway
