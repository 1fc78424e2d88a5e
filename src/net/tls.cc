#include "net/tls.h"

#include <array>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/error.h"
#include "net/tls_internal.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// The only protocol we speak, as ALPN writes it: length, then name.
constexpr std::array<unsigned char, 9> kAlpn = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

std::string read_pem(const Pem& pem, std::string_view what) {
  if (!pem.text.empty()) return pem.text;
  std::ifstream file(pem.file, std::ios::binary);
  if (!file) fail(Code::invalid, "cannot read the {} in '{}'", what, pem.file);
  return {std::istreambuf_iterator<char>(file), {}};
}

void check(const error_code& error, std::string_view what) {
  if (error) fail(Code::invalid, "the {} does not load: {}", what, error.message());
}

void load_identity(asio::ssl::context& context, const Pem& certificate, const Pem& key) {
  error_code error;
  const std::string chain = read_pem(certificate, "certificate");
  check(context.use_certificate_chain(asio::buffer(chain), error), "certificate");
  const std::string secret = read_pem(key, "private key");
  check(context.use_private_key(asio::buffer(secret), asio::ssl::context::pem, error),
        "private key");
  if (SSL_CTX_check_private_key(context.native_handle()) != 1) {
    fail(Code::invalid, "the private key is not the certificate's");
  }
}

void load_authority(asio::ssl::context& context, const Pem& ca) {
  error_code error;
  const std::string text = read_pem(ca, "certificate authority");
  check(context.add_certificate_authority(asio::buffer(text), error), "certificate authority");
}

void set_common(asio::ssl::context& context) {
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.native_handle(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // Buffers of an idle connection are given back: 34 KiB each otherwise.
  SSL_CTX_set_mode(context.native_handle(), SSL_MODE_RELEASE_BUFFERS);
}

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_length,
                    const unsigned char* offered, unsigned offered_length, void*) {
  unsigned char* chosen = nullptr;
  const int result = SSL_select_next_proto(&chosen, out_length, kAlpn.data(), kAlpn.size(), offered,
                                           offered_length);
  if (result != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_NOACK;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

// Every entry of one kind in the subject of a verified certificate. The bytes, not a C string: a
// NUL inside would cut a name short, and make it another's.
std::vector<std::string> verified_names(SSL* ssl, int kind) {
  X509* certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr || SSL_get_verify_result(ssl) != X509_V_OK) return {};
  const X509_NAME* subject = X509_get_subject_name(certificate);
  std::vector<std::string> names;
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, kind, at)) >= 0;) {
    const ASN1_STRING* value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    unsigned char* utf8 = nullptr;
    const int length = ASN1_STRING_to_UTF8(&utf8, value);
    if (length < 0) return {};
    names.emplace_back(reinterpret_cast<char*>(utf8), static_cast<std::size_t>(length));
    OPENSSL_free(utf8);
  }
  return names;
}

}  // namespace

ssl_ctx_st* native_handle(TlsContext& context) {
  return context.context.native_handle();
}

std::shared_ptr<TlsContext> make_tls_context(const TlsServerOptions& options) {
  auto made = std::make_shared<TlsContext>(asio::ssl::context::tls_server);
  set_common(made->context);
  load_identity(made->context, options.certificate, options.key);
  SSL_CTX_set_alpn_select_cb(made->context.native_handle(), choose_protocol, nullptr);
  if (!options.client_ca.empty()) {
    load_authority(made->context, options.client_ca);
    const bool required = options.require_client_certificate;
    made->context.set_verify_mode(asio::ssl::verify_peer |
                                  (required ? asio::ssl::verify_fail_if_no_peer_cert : 0));
  }
  // Client certificates and session resumption need a context id; without one OpenSSL refuses the
  // second connection of such a client.
  constexpr std::array<unsigned char, 6> kSessionContext = {'h', 'e', 'a', 'r', 't', 'h'};
  SSL_CTX_set_session_id_context(made->context.native_handle(), kSessionContext.data(),
                                 kSessionContext.size());
  return made;
}

std::shared_ptr<TlsContext> make_tls_context(const TlsClientOptions& options) {
  auto made = std::make_shared<TlsContext>(asio::ssl::context::tls_client);
  set_common(made->context);
  made->server_name = options.server_name;
  made->verify = options.verify;
  if (!options.certificate.empty()) {
    load_identity(made->context, options.certificate, options.key);
  }
  if (options.ca.empty() || options.trusts_system) made->context.set_default_verify_paths();
  if (!options.ca.empty()) load_authority(made->context, options.ca);
  made->context.set_verify_mode(options.verify ? asio::ssl::verify_peer : asio::ssl::verify_none);
  SSL_CTX_set_alpn_protos(made->context.native_handle(), kAlpn.data(), kAlpn.size());
  return made;
}

void expect_server(SSL* ssl, const TlsContext& context, const std::string& host) {
  const std::string& name = context.server_name.empty() ? host : context.server_name;
  error_code not_an_address;
  asio::ip::make_address(name, not_an_address);
  // SNI is for names only (RFC 6066 section 3).
  if (not_an_address) SSL_set_tlsext_host_name(ssl, name.c_str());
  if (!context.verify) return;
  const int set = not_an_address ? SSL_set1_host(ssl, name.c_str())
                                 : X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str());
  if (set != 1) fail(Code::invalid, "'{}' cannot be the name of a TLS server", name);
}

std::string tls_failure(SSL* ssl, const error_code& error) {
  const long verdict = SSL_get_verify_result(ssl);
  if (verdict != X509_V_OK) return X509_verify_cert_error_string(verdict);
  return error.message();
}

std::string verified_common_name(SSL* ssl) {
  const auto names = verified_names(ssl, NID_commonName);
  return names.empty() ? std::string() : names.front();
}

std::vector<std::string> verified_organisations(SSL* ssl) {
  return verified_names(ssl, NID_organizationName);
}

}  // namespace hearth::net
