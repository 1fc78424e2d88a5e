#include "inside/watchers.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/id.h"

namespace hearth::inside {
namespace {

// The kernel allows a user so many anyway.
constexpr std::size_t kMaxWatchers = 128;
// Of one watcher; a large repository fits.
constexpr std::size_t kMaxEvents = 65'536;
constexpr std::size_t kIdBytes = 8;

}  // namespace

Watchers::Watchers() : bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!bell_) throw_errno("make an eventfd");
}

Watchers::~Watchers() {
  state_.with([](State& state) { state.stopping = true; });
  ring();
  if (thread_.joinable()) thread_.join();
}

void Watchers::ring() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t rung = ::write(bell_.get(), &one, sizeof one);
}

// With the lock held.
void Watchers::Watched::drain() {
  try {
    watcher.drain([this](WatchEvent event) {
      lost = lost || events.size() >= kMaxEvents;
      if (!lost) events.push_back(std::move(event));
    });
  } catch (const Error&) {
    lost = true;
  }
}

std::string Watchers::add(std::string path, bool recursive, bool include_entry) {
  auto watched = std::make_shared<Watched>(std::move(path), recursive, include_entry);
  std::string id = "w" + random_hex(kIdBytes);
  state_.with([&](State& state) {
    if (state.all.size() >= kMaxWatchers)
      fail(Code::exhausted, "there are {} watchers already", kMaxWatchers);
    state.all.emplace(id, std::move(watched));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  });
  ring();
  return id;
}

std::shared_ptr<Watchers::Watched> Watchers::find(const std::string& id) {
  return state_.with([&](State& state) {
    const auto found = state.all.find(id);
    if (found == state.all.end()) fail(Code::not_found, "watcher with id {} not found", id);
    return found->second;
  });
}

Watchers::Fetched Watchers::fetch(const std::string& id) {
  const auto watched = find(id);
  const std::lock_guard lock(watched->mutex);
  watched->drain();
  Fetched fetched{.path = watched->watcher.path(),
                  .include_entry = watched->include_entry,
                  .events = {std::make_move_iterator(watched->events.begin()),
                             std::make_move_iterator(watched->events.end())}};
  watched->events.clear();
  if (std::exchange(watched->lost, false))
    fail(Code::exhausted, "more happened than watcher {} could remember; some of it is lost", id);
  return fetched;
}

void Watchers::remove(const std::string& id) {
  find(id);
  state_.with([&](State& state) { state.all.erase(id); });
  ring();
}

void Watchers::run() {
  std::vector<std::shared_ptr<Watched>> all;
  std::vector<pollfd> waits;
  while (true) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(bell_.get(), &count, sizeof count);
    waits.assign(1, {.fd = bell_.get(), .events = POLLIN, .revents = 0});
    all.clear();
    const bool stopping = state_.with([&](const State& state) {
      for (const auto& [id, watched] : state.all) all.push_back(watched);
      return state.stopping;
    });
    if (stopping) return;
    for (const auto& watched : all)
      waits.push_back({.fd = watched->watcher.fd(), .events = POLLIN, .revents = 0});
    ::poll(waits.data(), waits.size(), -1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (waits[i + 1].revents == 0) continue;
      const std::lock_guard lock(all[i]->mutex);
      all[i]->drain();
    }
  }
}

}  // namespace hearth::inside
