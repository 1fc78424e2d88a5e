// Certificates for servers and clients. TLS 1.2 or newer, always.
#pragma once

#include <memory>
#include <string>

struct ssl_ctx_st;

namespace hearth::net {

// PEM text, in a file or at hand (as kubeconfig files have it). Text wins.
struct Pem {
  std::string file;
  std::string text;

  bool empty() const { return file.empty() && text.empty(); }
};

struct TlsServerOptions {
  Pem certificate;  // with its chain
  Pem key;
  // Signs the client certificates that are accepted; without it none is asked for.
  Pem client_ca;
  bool require_client_certificate = false;
};

struct TlsClientOptions {
  Pem ca;                      // empty: the authorities that the system trusts
  bool trusts_system = false;  // those as well, where there is one
  // Shown to a server that asks.
  Pem certificate;
  Pem key;
  // What the server's certificate must name, and SNI; empty: the host that is connected to.
  std::string server_name;
  // False accepts any certificate. Only for kubeconfig's insecure-skip-tls-verify.
  bool verify = true;
};

// Loaded once, used by many connections; thread-safe.
class TlsContext;
std::shared_ptr<TlsContext> make_tls_context(const TlsServerOptions& options);
std::shared_ptr<TlsContext> make_tls_context(const TlsClientOptions& options);
// Both throw Error(invalid) for what does not load or does not belong together.

// OpenSSL's own word for it, for whoever drives its sockets itself.
ssl_ctx_st* native_handle(TlsContext& context);

}  // namespace hearth::net
