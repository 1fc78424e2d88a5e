// The least HTTP server there can be: one thread, one epoll, and a function that answers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "linux/fd.h"

namespace hearth::bench {

// An answer, head and all.
std::string answer_text(unsigned status, std::string_view body);

class SmallServer {
 public:
  // The answer to a whole request; what it returns has to live until it is called again.
  using Answer = std::function<std::string_view(std::string_view request)>;

  // The same to everybody: so many bytes.
  static Answer echo(unsigned status, std::size_t body_bytes);

  // Listens on any free port of the loopback.
  explicit SmallServer(Answer answer);

  std::uint16_t port() const;
  [[noreturn]] void serve();

 private:
  void accept();
  void talk(int connection_fd);

  Answer answer_;
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
