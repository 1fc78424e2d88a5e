// The Kubernetes API of any cluster, over HTTP/1.1.
//
// Certificates are verified unless the kubeconfig says otherwise. What the server asks to try again
// later (429 and 5xx with Retry-After) is tried again, and so is what can be asked twice when the
// connection fails; with pauses, and not past the deadline. Watches are not: see WatchCache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "client/client.h"
#include "client/cluster_access.h"
#include "http/http.h"

namespace hearth::client {

struct HttpClientOptions {
  // Of a call, with all its tries.
  Duration timeout = std::chrono::seconds(30);
  unsigned tries = 6;
  Duration first_pause = std::chrono::milliseconds(200);
  Duration most_pause = std::chrono::seconds(5);
  // The answer to a list, and one event of a watch; more is Error(exhausted).
  std::uint64_t most_body_bytes = 256 << 20;
  std::size_t most_event_bytes = 16 << 20;
  // fieldManager of writes that name none.
  std::string manager = "hearth";
  // Sleeps, unless a test looks on.
  std::function<void(Duration)> pause = {};
};

class HttpClient final : public Client {
 public:
  // Throws Error(invalid) for a server or certificates that are none. Asks nobody yet.
  explicit HttpClient(const ClusterAccess& access, HttpClientOptions options = {});
  ~HttpClient() override;

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

  // For what client.h has no word for: /version, discovery. The target is a path below the
  // server's. Throws StatusError for answers other than 2xx.
  http::Response fetch(const http::Request& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::client
