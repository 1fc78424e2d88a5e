#include "guest/core.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace hearth::guest {

namespace {

constexpr std::string_view kPassthrough = "SUBPROCESS_ENV_PASSTHROUGH=";

std::set<std::string, std::less<>> names_in(std::string_view list) {
  std::set<std::string, std::less<>> names = {"PATH", "LANG", "LC_ALL"};
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view name = list.substr(0, comma);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    names.emplace(name);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return names;
}

}  // namespace

std::vector<std::string> environment_for_commands(const Settings& settings) {
  // The last of two with the same name counts.
  const auto found = std::ranges::find_if(
      settings.environment.rbegin(), settings.environment.rend(),
      [](const std::string& entry) { return entry.starts_with(kPassthrough); });
  if (found == settings.environment.rend()) return settings.environment;
  const auto allowed = names_in(std::string_view(*found).substr(kPassthrough.size()));
  std::vector<std::string> passed;
  for (const std::string& entry : settings.environment) {
    if (allowed.contains(std::string_view(entry).substr(0, entry.find('='))))
      passed.push_back(entry);
  }
  return passed;
}

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

void Core::change_settings(const std::function<void(Settings&)>& change) {
  settings_.with([&](Settings& current) {
    Settings changed = current;
    change(changed);
    current = std::move(changed);
  });
}

std::optional<linux::Channel> Core::take_arrival() {
  linux::Message message;
  if (arrivals_.try_receive(message) != linux::Channel::Arrival::message || message.fds.size() != 1)
    return std::nullopt;
  return linux::Channel(std::move(message.fds.front()));
}

}  // namespace hearth::guest
