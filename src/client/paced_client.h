// A client that asks no more often than it may: --kube-api-qps and --kube-api-burst.
//
// Watches count once, when they begin. Calls that come too soon wait their turn. Thread-safe.
#pragma once

#include <chrono>
#include <mutex>

#include "client/client.h"

namespace hearth::client {

class PacedClient final : public Client {
 public:
  // `inner` must outlive it.
  PacedClient(Client& inner, double per_second, unsigned burst);

  Answer get(const ResourceId& resource, std::string_view ns, std::string_view name) override;
  List list(const ResourceId& resource, const ListOptions& options) override;
  Answer create(const ResourceId& resource, const Json& object,
                const WriteOptions& options) override;
  Answer update(const ResourceId& resource, const Json& object, std::string_view subresource,
                const WriteOptions& options) override;
  Answer patch(const ResourceId& resource, std::string_view ns, std::string_view name,
               PatchKind kind, const Json& patch, const PatchOptions& options) override;
  Answer remove(const ResourceId& resource, std::string_view ns, std::string_view name,
                const DeleteOptions& options) override;
  Answer post(const ResourceId& resource, std::string_view ns, std::string_view name,
              std::string_view subresource, const Json& body) override;
  WatchEnd watch(const ResourceId& resource, const WatchOptions& options,
                 const std::function<void(Event event)>& handler,
                 const std::stop_token& stop) override;

 private:
  // The inner one, when it is our turn.
  Client& turn();

  Client& inner_;
  const Duration between_;
  const Duration credit_;  // how far behind the next turn may lie
  std::mutex mutex_;       // guards next_
  std::chrono::steady_clock::time_point next_;
};

}  // namespace hearth::client
