// Translates E2B's HTTP API into our objects and back (docs/adr/0019). All of E2B's paths and
// spellings live here; the data plane is the gateway's.
//
// It keeps nothing but caches: a sandbox is a Sandbox, its name the id, a team a namespace. What it
// needs to wait for it hears from the caches of the manager it is given.
//
// Made before the manager's caches start; start() serves, stop() returns when nothing of it runs.
// Requests come from the gateway, which is in this process: ask().
#pragma once

#include <functional>
#include <memory>

#include "e2b/core.h"
#include "http/http.h"

namespace hearth::net {
class Router;
}

namespace hearth::e2b {

class Api {
 public:
  // Adds its controller to the manager, and handlers to its caches.
  Api(const Parts& parts, Options options);
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;
  ~Api();

  // After the caches have synced.
  void start();
  // From start() on; after stop() everybody is told 503. Does not block.
  // `answer` is called once, perhaps before this returns, and must neither block nor throw.
  void ask(http::Request request, std::function<void(http::Response)> answer);
  // Idempotent. After it no handler runs; the manager's controllers are stopped by their owner,
  // before this is destroyed.
  void stop();

  // For the gateway: a paused sandbox that may be woken runs when this returns. Blocks; callers for
  // one sandbox share one resume. Nothing happens to one that runs. Throws Error: not_found,
  // forbidden (it does not wake by itself), exhausted (its team runs as many as it may), timeout.
  void wake(const model::Key& key);

  // Removes images of earlier lives that nothing names any more. start() does.
  void sweep_images();
  // One look at what sandboxes use. After start() it happens by itself, every few seconds.
  void sample();

  // Every route, for tests. It must not outlive this.
  net::Router router();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::e2b
