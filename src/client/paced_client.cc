#include "client/paced_client.h"

#include <algorithm>
#include <thread>

namespace hearth::client {

PacedClient::PacedClient(Client& inner, double per_second, unsigned burst)
    : inner_(inner),
      between_(std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(1 / std::max(per_second, 1e-6)))),
      credit_(between_ * (std::max(burst, 1U) - 1)) {}

// Turns are handed out `between_` apart; those that nobody took may be taken later, all at once.
Client& PacedClient::turn() {
  std::chrono::steady_clock::time_point mine;
  {
    const std::lock_guard lock(mutex_);
    next_ = std::max(next_, std::chrono::steady_clock::now() - credit_);
    mine = next_;
    next_ += between_;
  }
  std::this_thread::sleep_until(mine);
  return inner_;
}

Answer PacedClient::get(const ResourceId& resource, std::string_view ns, std::string_view name) {
  return turn().get(resource, ns, name);
}

List PacedClient::list(const ResourceId& resource, const ListOptions& options) {
  return turn().list(resource, options);
}

Answer PacedClient::create(const ResourceId& resource, const Json& object,
                           const WriteOptions& options) {
  return turn().create(resource, object, options);
}

Answer PacedClient::update(const ResourceId& resource, const Json& object,
                           std::string_view subresource, const WriteOptions& options) {
  return turn().update(resource, object, subresource, options);
}

Answer PacedClient::patch(const ResourceId& resource, std::string_view ns, std::string_view name,
                          PatchKind kind, const Json& patch, const PatchOptions& options) {
  return turn().patch(resource, ns, name, kind, patch, options);
}

Answer PacedClient::remove(const ResourceId& resource, std::string_view ns, std::string_view name,
                           const DeleteOptions& options) {
  return turn().remove(resource, ns, name, options);
}

Answer PacedClient::post(const ResourceId& resource, std::string_view ns, std::string_view name,
                         std::string_view subresource, const Json& body) {
  return turn().post(resource, ns, name, subresource, body);
}

WatchEnd PacedClient::watch(const ResourceId& resource, const WatchOptions& options,
                            const std::function<void(Event event)>& handler,
                            const std::stop_token& stop) {
  return turn().watch(resource, options, handler, stop);
}

}  // namespace hearth::client
