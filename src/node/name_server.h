// Answers names of Services and pods, and passes all other questions on to the host's resolver.
// A client that may reach hosts by name asks for those alone (`judge`), and hears an answer when it
// may reach what that says (`admit`). Listens on one port of the sandboxes' gateway, to datagrams
// and streams, and to nobody but sandboxes and this host. A thread of its own; what is under way is
// bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "network/policy.h"
#include "node/admissions.h"
#include "node/named_hosts.h"
#include "node/service_map.h"

namespace hearth::node {

struct NameServerOptions {
  network::Cidr clients;      // who is heard
  std::uint32_t address = 0;  // to listen at
  std::string domain = "cluster.local";
  std::uint32_t upstream = 0;  // 0: other names are not answered
  std::uint16_t upstream_port = 53;
  // Without one, everybody asks freely. Called by the server's own thread: must not block.
  std::function<NameRuling(std::uint32_t client, std::string_view name)> judge = {};
  Admissions::Admit admit = {};
};

class NameServer {
 public:
  // Throws Error.
  explicit NameServer(const NameServerOptions& options);
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;
  ~NameServer();

  std::string address() const;  // "10.77.0.1"
  std::uint16_t port() const;
  // Thread-safe.
  void set_names(Names names);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::node
