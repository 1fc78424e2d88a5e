#include "gateway/ahead.h"

#include <poll.h>

#include <utility>
#include <vector>

namespace hearth::gateway {
namespace {

// A server that speaks first, or has left, is not what was wanted.
bool is_quiet(const linux::Fd& socket) {
  pollfd look{.fd = socket.get(), .events = POLLIN | POLLRDHUP, .revents = 0};
  return ::poll(&look, 1, 0) == 0;
}

}  // namespace

void Ahead::dial(const RoutePtr& route, std::uint16_t port) {
  const std::uint64_t number = UpstreamKey{.serial = route->serial, .port = port}.number();
  const bool is_new = entries_.with([&](Entries& entries) {
    if (entries.size() >= kMost || !entries.try_emplace(number).second) return false;
    count_ = entries.size();
    return true;
  });
  if (!is_new) return;
  const bool is_begun =
      errands_.run([this, route, port, number] { arrive(number, dialler_.dial(*route, port)); });
  if (!is_begun) arrive(number, {});
}

void Ahead::put(UpstreamKey key, Dialled dialled) {
  entries_.with([&](Entries& entries) {
    if (entries.size() >= kMost) return;
    const auto [at, is_new] = entries.try_emplace(key.number());
    if (!is_new) return;
    at->second = {
        .is_made = true, .since = std::chrono::steady_clock::now(), .dialled = std::move(dialled)};
    count_ = entries.size();
  });
}

void Ahead::drop(UpstreamKey key) {
  if (count_ == 0) return;
  Dialled made;  // closed without the lock
  entries_.with([&](Entries& entries) {
    const auto at = entries.find(key.number());
    if (at == entries.end() || !at->second.is_made) return;
    made = std::move(at->second.dialled);
    entries.erase(at);
    count_ = entries.size();
  });
}

void Ahead::arrive(std::uint64_t number, Dialled dialled) {
  const Arrival arrival = entries_.with([&](Entries& entries) -> Arrival {
    const auto at = entries.find(number);
    Arrival waiting = std::move(at->second.arrival);
    if (waiting || dialled.state != DialState::connected) {
      entries.erase(at);
      count_ = entries.size();
      return waiting;
    }
    at->second.is_made = true;
    at->second.since = std::chrono::steady_clock::now();
    at->second.dialled = std::move(dialled);
    return {};
  });
  if (arrival) arrival(std::move(dialled));
}

Ahead::Found Ahead::take(UpstreamKey key, Dialled& made, Arrival arrival) {
  if (count_ == 0) return Found::nothing;
  const Found found = entries_.with([&](Entries& entries) {
    const auto at = entries.find(key.number());
    if (at == entries.end()) return Found::nothing;
    if (!at->second.is_made) {
      if (at->second.arrival) return Found::nothing;  // somebody else's
      at->second.arrival = std::move(arrival);
      return Found::coming;
    }
    made = std::move(at->second.dialled);
    entries.erase(at);
    count_ = entries.size();
    return Found::made;
  });
  return found == Found::made && !is_quiet(made.socket) ? Found::nothing : found;
}

void Ahead::sweep(Duration age) {
  if (count_ == 0) return;
  const auto oldest = std::chrono::steady_clock::now() - age;
  std::vector<Dialled> old;  // closed without the lock
  entries_.with([&](Entries& entries) {
    for (auto at = entries.begin(); at != entries.end();) {
      if (at->second.is_made && at->second.since <= oldest) {
        old.push_back(std::move(at->second.dialled));
        at = entries.erase(at);
      } else {
        ++at;
      }
    }
    count_ = entries.size();
  });
}

}  // namespace hearth::gateway
