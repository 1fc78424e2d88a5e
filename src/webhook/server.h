// The conversion webhook's server: POST /convert over TLS, for anybody who reaches it.
//
// Whoever asks gets back what they sent, converted; there is nothing to learn here. What they can
// use up is bounded: connections, small reviews, a few large ones at once, two processors.
#pragma once

#include <memory>

#include "linux/fd.h"
#include "pki/authority.h"

namespace hearth::webhook {

inline constexpr char kPath[] = "/convert";

class Server {
 public:
  // `socket` listens already.
  explicit Server(linux::Fd socket);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // With this identity, from now on; connections of the one before end first. Throws
  // Error(invalid) for one that is none, and goes on as before.
  void serve(const pki::Identity& identity);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::webhook
