// How much and how long a peer may ask of us. The defaults are for strangers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace hearth::http {

struct Limits {
  // Room for a bearer token of a few KiB and a selector in the query; more is a 431.
  std::size_t head_bytes = 64 << 10;
  // More header fields are a 431: each costs two strings.
  std::size_t fields = 128;
  // More is a 414. Kubernetes clients put label selectors into the target.
  std::size_t target_bytes = 16 << 10;
  // A body that is kept in memory; more is a 413. kube-apiserver takes 3 MiB.
  std::uint64_t body_bytes = 4 << 20;
};

struct Timeouts {
  // TLS handshake.
  Duration handshake = std::chrono::seconds(10);
  // A head, from its first byte to its last; a 408. A new connection has as long to send that
  // first byte.
  Duration head = std::chrono::seconds(10);
  // Between two requests. Longer than the usual client's, so that the client closes first.
  Duration idle = std::chrono::seconds(75);
  // Between two pieces of a body, and for the whole body of a unary request; a 408.
  Duration body = std::chrono::seconds(30);
  Duration whole_body = std::chrono::minutes(2);
  // Until a peer takes at least some of what we write to it.
  Duration write = std::chrono::seconds(30);
};

}  // namespace hearth::http
