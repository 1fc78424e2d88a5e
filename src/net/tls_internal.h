// What is inside a TlsContext.
#pragma once

#include <string>
#include <vector>

#include <boost/asio/ssl/context.hpp>

#include "net/tls.h"

namespace hearth::net {

class TlsContext {
 public:
  explicit TlsContext(boost::asio::ssl::context::method method) : context(method) {}

  boost::asio::ssl::context context;
  std::string server_name;  // of a client
  bool verify = true;       // of a client
};

// Tells the handshake to come whom we expect: SNI and the name (or address) to verify.
void expect_server(SSL* ssl, const TlsContext& context, const std::string& host);

// Why a handshake failed, for a person. OpenSSL knows more than the error code says.
std::string tls_failure(SSL* ssl, const boost::system::error_code& error);

// Of the peer's certificate, if there is one and it was verified.
std::string verified_common_name(SSL* ssl);
std::vector<std::string> verified_organisations(SSL* ssl);

}  // namespace hearth::net
