// Connections to whatever hosts an image's parts are at.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "net/client.h"
#include "registry/url.h"

namespace hearth::registry {

// Thread-safe. Keeps one client a host, which keeps its connections.
class Transport {
 public:
  // As of PullOptions. Throws Error(invalid) for what does not load.
  Transport(const std::string& ca_file, const std::string& extra_ca);

  net::Client& client_for(const Url& url);

 private:
  std::shared_ptr<net::TlsContext> tls_;
  std::mutex mutex_;                                             // guards clients_
  std::map<std::string, std::unique_ptr<net::Client>> clients_;  // by origin
};

}  // namespace hearth::registry
