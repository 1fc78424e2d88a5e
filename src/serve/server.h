// A small HTTP/1.1 server for the guest: blocking handlers on threads that come and go.
//
// Every thread waits for the next readable connection and answers what it finds there itself: no
// hand-over, no event loop that a slow handler could hold up. There is always one thread more than
// is busy, up to a limit; threads with nothing to do end. A connection without a request costs a
// descriptor and a few hundred bytes.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "linux/fd.h"
#include "serve/exchange.h"

namespace hearth::serve {

// Answers one request. What it throws becomes a plain answer if nothing was sent yet, and the end
// of the connection otherwise.
using Handler = std::function<void(Exchange&)>;

struct Entrance {
  linux::Fd listen;  // a listening stream socket, non-blocking
  Handler handler;
  // A whole request that changes nothing. It is answered, for nobody, when the first client has
  // been let in: what it touches need not be touched for the first time by a request that somebody
  // waits for.
  std::function<std::string()> rehearsal = {};
};

struct ServerOptions {
  std::size_t threads = 1024;      // at once: streams hold one each
  std::size_t connections = 2048;  // beyond that the one that is idle for longest is closed
  // What all requests together may keep of their bodies. As much again, some times over, may become
  // of it where it is read.
  std::size_t bodies = std::size_t{32} << 20;
  Patience patience;
  // How long a thread waits for work before it looks whether it is still needed.
  Duration thread_patience = std::chrono::seconds(20);
};

class Server {
 public:
  explicit Server(std::vector<Entrance> entrances, ServerOptions options = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Ends every connection and waits for the handlers.
  ~Server();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::serve
