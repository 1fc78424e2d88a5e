#include "guest/core.h"

#include <utility>

namespace hearth::guest {

Core::Core(Settings settings) : settings_(std::move(settings)) {
  std::tie(door_, arrivals_) = linux::Channel::make_pair();
}

Connection Core::connect() {
  auto [ours, theirs] = linux::Channel::make_pair();
  const int fd = theirs.fd();
  door_.send("c", {&fd, 1});
  return Connection(std::move(ours));
}

Settings Core::settings() const {
  return settings_.with([](const Settings& settings) { return settings; });
}

void Core::set_settings(Settings settings) {
  settings_.with([&](Settings& current) { current = std::move(settings); });
}

std::optional<linux::Channel> Core::take_arrival() {
  linux::Message message;
  if (arrivals_.try_receive(message) != linux::Channel::Arrival::message || message.fds.size() != 1)
    return std::nullopt;
  return linux::Channel(std::move(message.fds.front()));
}

}  // namespace hearth::guest
