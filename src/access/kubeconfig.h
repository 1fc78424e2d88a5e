// A kubeconfig file: where the server is, how to trust it, and who one is.
#pragma once

#include <string>

#include "pki/authority.h"

namespace hearth::access {

struct Kubeconfig {
  std::string cluster = "hearth";  // also the name of the context
  std::string server;              // "https://127.0.0.1:6443"
  std::string authority;           // PEM
  std::string user = "admin";
  // Either a token or an identity.
  std::string token;
  pki::Identity identity;
  std::string ns;  // may be empty
};

std::string kubeconfig_text(const Kubeconfig& config);

// Replaces the file at once; only its owner may read it. Its folder must be there.
void write_kubeconfig(const std::string& path, const Kubeconfig& config);

}  // namespace hearth::access
