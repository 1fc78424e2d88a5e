// Kept connections to sandboxes, of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "gateway/endpoint.h"
#include "gateway/limits.h"

namespace hearth::gateway {

// Whose a connection is: Route::serial, and the port.
struct UpstreamKey {
  std::uint64_t serial = 0;
  std::uint16_t port = 0;

  std::uint64_t number() const { return (serial << 16) | port; }
};

struct Upstream final : public Endpoint {
  Upstream(linux::Fd socket, bool is_connecting, UpstreamKey whose)
      : Endpoint(std::move(socket), is_connecting), key(whose) {}

  const UpstreamKey key;
  bool is_kept = false;  // it has answered a request before
  std::int64_t idle_since = 0;
};

using UpstreamPtr = std::unique_ptr<Upstream>;

class Upstreams final : public EndpointOwner {
 public:
  // `bury` takes what is given up: its events may still be under way.
  Upstreams(const Limits& limits, std::function<void(UpstreamPtr)> bury);
  ~Upstreams() override;

  // The one that was used last; null for none.
  UpstreamPtr take(UpstreamKey key);
  void keep(UpstreamPtr upstream, std::int64_t now);
  // Those that were idle for too long.
  void sweep(std::int64_t now);
  void clear();
  std::size_t size() const { return size_; }

  // Something happened to an idle one: it is of no use any more.
  void on_ready(Endpoint& endpoint) override;

 private:
  const Limits& limits_;
  std::function<void(UpstreamPtr)> bury_;
  std::unordered_map<std::uint64_t, std::vector<UpstreamPtr>> idle_;
  std::size_t size_ = 0;
};

}  // namespace hearth::gateway
