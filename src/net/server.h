// An HTTP/1.1 server: a router behind a listening socket.
//
// start() returns when connections are accepted; stop() returns when nothing of the server runs any
// more. Each connection lives on one of the server's threads and never changes it.
//
// A stranger can make it answer with an error or close a connection, and nothing else: every wait
// has a deadline (Timeouts), everything kept in memory a bound (Limits, max_connections).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "net/router.h"
#include "net/tls.h"
#include "net/words.h"

namespace hearth::net {

struct ServerOptions {
  // An address of this machine; loopback unless told. Ignored with unix_path or listen_fd.
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any that is free, see Server::port()
  // A unix socket that only its owner may connect to (mode 0600). A socket file whose process is
  // gone is replaced; one that is alive makes start() throw Error(already_exists).
  std::string unix_path = {};
  // A socket that listens already; the server owns it from now on.
  int listen_fd = -1;
  std::optional<TlsServerOptions> tls = {};
  unsigned threads = 1;
  // More are told 503 and closed. Each costs a descriptor and some 10 KiB.
  std::size_t max_connections = 4096;
  Limits limits = {};
  Timeouts timeouts = {};
};

class Server {
 public:
  // Throws Error(invalid) for certificates that do not load.
  Server(ServerOptions options, Router router);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();  // stop() without grace

  // Throws Error when it cannot listen.
  void start();

  // Accepts no more, closes idle connections, lets requests under way finish for `grace`, then cuts
  // them: their handlers see an exception at their next wait. Waits for a handler that blocks.
  // Idempotent; from any thread but the server's own.
  void stop(Duration grace = {});

  // Where it listens, for TCP.
  std::uint16_t port() const;
  // Connections at this moment.
  std::size_t connections() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::net
