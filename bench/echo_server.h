// The least HTTP server there can be: one thread, one epoll, the same answer to everybody.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "linux/fd.h"

namespace hearth::bench {

class EchoServer {
 public:
  // Listens on any free port of the loopback.
  EchoServer(unsigned status, std::size_t body_bytes);

  std::uint16_t port() const;
  [[noreturn]] void serve();

 private:
  void accept();
  void answer(int connection_fd);

  std::string answer_;
  linux::Fd listening_;
  linux::Fd epoll_;
  // By descriptor.
  struct Connection {
    linux::Fd socket;
    std::string request;  // as far as it has come
  };
  std::vector<Connection> connections_;
};

}  // namespace hearth::bench
