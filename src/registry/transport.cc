#include "registry/transport.h"

#include "base/error.h"

namespace hearth::registry {
namespace {

// A registry that sends layers from ever new hosts is up to no good.
constexpr std::size_t kMaxHosts = 64;

}  // namespace

Transport::Transport(const std::string& ca_file, const std::string& extra_ca)
    : tls_(net::make_tls_context(net::TlsClientOptions{.ca = {.file = ca_file, .text = extra_ca},
                                                       .trusts_system = !extra_ca.empty()})) {}

net::Client& Transport::client_for(const Url& url) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<net::Client>& client = clients_[url.origin()];
  if (clients_.size() > kMaxHosts) fail(Code::invalid, "the registry names too many hosts");
  if (!client) {
    net::Endpoint endpoint{.host = url.host, .port = url.port};
    if (url.tls) endpoint.tls = tls_;
    client = std::make_unique<net::Client>(std::move(endpoint));
  }
  return *client;
}

}  // namespace hearth::registry
