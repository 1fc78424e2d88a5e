// The engine's own certificate authority, in a folder of its state.
//
// ca.crt and ca.key are made when they are first needed and never silently replaced: every
// kubeconfig trusts them. server.crt and server.key are made again whenever they no longer fit.
// Keys are files that only their owner may read, and are never logged. Throws Error.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"

namespace hearth::pki {

// PEM text.
struct Identity {
  std::string certificate;
  std::string key;
};

// Names that a server's certificate always has: how it is reached on its machine and from a pod.
std::vector<std::string> usual_server_names();

class Authority {
 public:
  // Loads the authority, or makes it. Error(invalid) for files that do not belong together, and
  // for a certificate without its key: making another would cut off everybody who trusts it.
  Authority(const std::string& folder, Time now);
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;
  ~Authority();

  // The authority's own certificate, for those who shall trust it.
  const std::string& certificate() const;

  // The server's identity for the usual names and `extra` (host names or addresses; wildcards of
  // the address listened on, "0.0.0.0" and "::", are left out). The kept one, unless it comes near
  // its end or is for other names. Error(invalid) for what cannot be a name.
  Identity server(const std::vector<std::string>& extra, Time now) const;

  // An identity for another server: these names and no others ("*.example.test" too). Not kept.
  Identity issue_server(const std::string& common_name, const std::vector<std::string>& names,
                        Time now) const;

  // An identity for a client. Not kept. `user` and `groups` are up to 256 printable bytes each.
  Identity issue_client(const std::string& user, const std::vector<std::string>& groups,
                        Duration lifetime, Time now) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::pki
