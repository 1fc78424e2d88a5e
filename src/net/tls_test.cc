#include "net/tls.h"

#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "net/client.h"
#include "net/server.h"
#include "net/stream.h"
#include "net/testing_internal.h"

namespace hearth::net {
namespace {

using namespace std::chrono_literals;

class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    options_.tls.emplace();
    options_.tls->certificate = server_identity_.certificate;
    options_.tls->key = server_identity_.key;
    router_.add("GET", "/who",
                [](const Request& r) { return text_response(200, r.peer_certificate); });
    router_.add("GET", "/groups", [](const Request& r) {
      std::string all;
      for (const std::string& group : r.peer_groups) all += group + ";";
      return text_response(200, all);
    });
    router_.add("POST", "/echo", [](const Request& r) { return text_response(200, r.body); },
                {.max_body_bytes = 8 << 20});
  }

  void start() {
    server_.emplace(options_, std::move(router_));
    server_->start();
  }
  Response fetch(const TlsClientOptions& tls, Request request = {.target = "/who"}) {
    Client client({.port = server_->port(), .tls = make_tls_context(tls)});
    return client.fetch(std::move(request));
  }
  // The code of the Error that fetch() throws.
  Code failure(const TlsClientOptions& tls) {
    try {
      const Response response = fetch(tls);
      ADD_FAILURE() << "got " << response.status;
    } catch (const Error& error) {
      message_ = error.what();
      return error.code();
    }
    return Code::internal;
  }

  const Identity authority_ = make_identity("authority");
  const Identity server_identity_ =
      make_identity("server", "DNS:hearth.test,IP:127.0.0.1", &authority_);
  ServerOptions options_;
  Router router_;
  std::string message_;
  std::optional<Server> server_;
};

TEST_F(TlsTest, ServesWhoeverTrustsItsAuthority) {
  start();

  EXPECT_EQ(fetch({.ca = authority_.certificate}).status, 200U);
  EXPECT_EQ(fetch({.ca = authority_.certificate, .server_name = "hearth.test"}).status, 200U);
}

TEST_F(TlsTest, KeepsConnectionsAndCarriesLargeBodies) {
  start();
  Client client({.port = server_->port(),
                 .tls = make_tls_context(TlsClientOptions{.ca = authority_.certificate})});
  const std::string body(5 << 20, 'x');

  for (int i = 0; i < 3; ++i) {
    Request request{.method = "POST", .target = "/echo", .body = body};
    EXPECT_EQ(client.fetch(std::move(request)).body, body);
    EXPECT_EQ(server_->connections(), 1U);
  }
}

TEST_F(TlsTest, TheWrongAuthorityIsRefused) {
  start();
  const Identity other = make_identity("authority");

  EXPECT_EQ(failure({.ca = other.certificate}), Code::unauthenticated);
  EXPECT_EQ(failure({}), Code::unauthenticated) << "the system does not know ours";
}

TEST_F(TlsTest, TheWrongNameIsRefused) {
  start();

  EXPECT_EQ(failure({.ca = authority_.certificate, .server_name = "other.test"}),
            Code::unauthenticated);
  EXPECT_NE(message_.find("ostname mismatch"), std::string::npos) << message_;
  EXPECT_EQ(failure({.ca = authority_.certificate, .server_name = "127.0.0.2"}),
            Code::unauthenticated);
}

TEST_F(TlsTest, VerificationCanBeTurnedOff) {
  start();

  EXPECT_EQ(fetch({.server_name = "other.test", .verify = false}).status, 200U);
}

TEST_F(TlsTest, ClientCertificatesAreVerifiedAndTold) {
  options_.tls->client_ca = authority_.certificate;
  start();
  const Identity alice = make_identity("alice", {}, &authority_);
  const Identity mallory = make_identity("alice");

  EXPECT_EQ(
      fetch({.ca = authority_.certificate, .certificate = alice.certificate, .key = alice.key})
          .body,
      "alice");
  EXPECT_EQ(fetch({.ca = authority_.certificate}).body, "");
  EXPECT_EQ(
      failure(
          {.ca = authority_.certificate, .certificate = mallory.certificate, .key = mallory.key}),
      Code::unavailable);
}

TEST_F(TlsTest, TheOrganisationsOfAClientCertificateAreItsGroups) {
  options_.tls->client_ca = authority_.certificate;
  start();
  const std::string with_nul("sys\0tem", 7);
  const Identity alice =
      make_identity("alice", {}, &authority_, {"system:masters", "devs", with_nul});
  const Identity loner = make_identity("loner", {}, &authority_);
  const auto groups_of = [&](const Identity& identity) {
    return fetch({.ca = authority_.certificate,
                  .certificate = identity.certificate,
                  .key = identity.key},
                 {.target = "/groups"})
        .body;
  };

  EXPECT_EQ(groups_of(alice), "system:masters;devs;" + with_nul + ";");
  EXPECT_EQ(groups_of(loner), "");
  EXPECT_EQ(fetch({.ca = authority_.certificate}, {.target = "/groups"}).body, "");
}

TEST_F(TlsTest, AServersCertificateIsNoClients) {
  options_.tls->client_ca = authority_.certificate;
  start();
  const Identity other_server =
      make_identity("server", "DNS:other.test", &authority_, {}, "serverAuth");

  EXPECT_EQ(failure({.ca = authority_.certificate,
                     .certificate = other_server.certificate,
                     .key = other_server.key}),
            Code::unavailable);
}

TEST_F(TlsTest, ClientCertificatesCanBeRequired) {
  options_.tls->client_ca = authority_.certificate;
  options_.tls->require_client_certificate = true;
  start();

  EXPECT_EQ(failure({.ca = authority_.certificate}), Code::unavailable);
}

TEST_F(TlsTest, PemMayBeInFiles) {
  TemporaryFolder folder;
  std::ofstream(folder.path("ca.pem")) << authority_.certificate.text;
  start();

  EXPECT_EQ(fetch({.ca = {.file = folder.path("ca.pem")}}).status, 200U);
  EXPECT_THROW(make_tls_context(TlsClientOptions{.ca = {.file = folder.path("nowhere")}}), Error);
}

TEST_F(TlsTest, AKeyOfSomeoneElseDoesNotLoad) {
  options_.tls->key = authority_.key;

  EXPECT_THROW(Server(options_, Router()), Error);
  options_.tls->key = {.text = "nonsense"};
  EXPECT_THROW(Server(options_, Router()), Error);
}

TEST_F(TlsTest, ThoseWhoDoNotSpeakTlsAreDropped) {
  options_.timeouts.handshake = 50ms;
  start();

  RawClient plain(server_->port());
  plain.send("GET /who HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(plain.read_all().find("HTTP/1.1"), std::string::npos);
  RawClient mute(server_->port());
  EXPECT_EQ(mute.read_all(), "");
  EXPECT_EQ(fetch({.ca = authority_.certificate}).status, 200U);
}

TEST_F(TlsTest, StoppingDoesNotWaitForAHandshake) {
  options_.timeouts.handshake = 1h;
  start();
  RawClient mute(server_->port());
  EXPECT_EQ(fetch({.ca = authority_.certificate}).status, 200U);

  server_->stop();

  EXPECT_TRUE(mute.sees_end());
}

}  // namespace
}  // namespace hearth::net
