// A router's handlers for whoever is in the same process: a Server without sockets, and without
// HTTP to write and to read again.
//
// What a client sees is the same as of a Server: the router's guards, limits and renderers. Routes
// that stream need a connection; here they are a 501. Made, it serves. Thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "net/router.h"
#include "net/words.h"

namespace hearth::net {

class LocalServer {
 public:
  using Answer = std::function<void(Response response)>;

  explicit LocalServer(Router router);
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;
  ~LocalServer();  // stop()

  // `request` has what was sent, with its whole body, and who sent it; the rest is filled in here.
  // `answer` is called once, and must neither block nor throw: by the worker that ran the handler,
  // or before this returns.
  void ask(Request request, Answer answer);

  // From now on everybody is told 503. Waits for handlers that run. Idempotent.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::net
