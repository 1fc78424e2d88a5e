// How much and how long strangers on either side may ask of the gateway.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/clock.h"

namespace hearth::gateway {

// What is read at once from either side, and so the largest piece that is passed on. Large enough
// that a file of megabytes costs few system calls; given back whenever it is empty.
inline constexpr std::size_t kBufferBytes = 64 << 10;

// A head of a request or an answer. Half a buffer: what we add to it always fits.
inline constexpr std::size_t kHeadBytes = kBufferBytes / 2;

// Tries to connect to a port that is closed, and the pause before each: programs that were just
// started open their ports within the second.
inline constexpr std::chrono::milliseconds kDialPauses[] = {
    std::chrono::milliseconds(30), std::chrono::milliseconds(80), std::chrono::milliseconds(160),
    std::chrono::milliseconds(280), std::chrono::milliseconds(450)};

// How many bytes of a request that was refused are read to let its answer arrive, and how long:
// clients that upload a file look for an answer when they have sent it, or meet an error.
inline constexpr std::size_t kLingerBytes = 256 << 20;
inline constexpr std::chrono::milliseconds kLingerTime = std::chrono::seconds(2);

struct Limits {
  // In all. The process's limit of descriptors lowers it: a request costs two. When it is reached
  // the connection that has been idle longest makes room; if none is idle, the new one is told 503.
  std::size_t connections = 65536;
  // Requests and streams under way to one sandbox: a 429 beyond. SDKs open up to 2,000.
  std::size_t per_sandbox = 4096;
  // Kept connections to sandboxes, for each thread: to one port, and in all.
  std::size_t idle_per_port = 64;
  std::size_t idle_upstreams = 4096;

  // Requests to the control plane under way: a 503 beyond. Their bodies are kept whole: a 413 for
  // one that is longer, a 408 for one that takes longer.
  std::size_t control_requests = 8192;
  std::size_t control_body = 1 << 20;
  // All that is kept of them: a 503 beyond.
  std::size_t control_bytes = 256 << 20;
  Duration control_body_time = std::chrono::minutes(2);

  // From accept to the first byte (with TLS: of the request), and a head's first byte to its last.
  Duration first_byte = std::chrono::seconds(60);
  Duration head = std::chrono::seconds(10);
  // Between requests. Clients keep connections for 5 minutes; who closes first loses a request.
  Duration idle = std::chrono::seconds(620);
  // A request's body that does not come on, and an answer that a client does not take.
  Duration stalled = std::chrono::seconds(610);
  // Until an answer begins. Commands run long before they say anything.
  Duration answer = std::chrono::hours(6);
  // Connecting to another machine.
  Duration connect = std::chrono::seconds(5);
  // Kept connections to sandboxes. Less than the five seconds after which common servers close
  // theirs: a request on its way then would be lost.
  Duration idle_upstream = std::chrono::seconds(4);
  // Those to sandboxes that nobody has yet, until they are made anew. Our own guests close theirs
  // after 640 s.
  Duration spare_upstream = std::chrono::minutes(5);
  // For a sandbox to wake up, and for one that is on its way between two states.
  Duration wake = std::chrono::seconds(60);
  // For an id that nobody knows to become known: a watch may be a moment behind an answer.
  Duration unknown = std::chrono::milliseconds(250);
};

}  // namespace hearth::gateway
