// The authority's certificates on a real connection, and what the authenticator makes of it.
#include <filesystem>

#include <gtest/gtest.h>

#include "access/authenticator.h"
#include "base/error.h"
#include "base/id.h"
#include "net/client.h"
#include "net/server.h"
#include "net/tls.h"
#include "pki/authority.h"

namespace hearth::access {
namespace {

using namespace std::chrono_literals;

class HandshakeTest : public testing::Test {
 protected:
  HandshakeTest()
      : folder_(std::filesystem::temp_directory_path() / ("hearth-handshake-" + random_hex(8))),
        now_(clock_.now()),
        authority_(folder_, now_),
        authenticator_({.tokens = {{"secret", {.name = "admin"}}}}, clock_) {
    const pki::Identity identity = authority_.server({"hearth.test"}, now_);
    net::ServerOptions options;
    options.tls = net::TlsServerOptions{.certificate = {.text = identity.certificate},
                                        .key = {.text = identity.key},
                                        .client_ca = {.text = authority_.certificate()}};
    net::Router router;
    router.add("GET", "/who", [this](const net::Request& request) {
      return net::text_response(200, model::to_text(to_json(authenticator_.authenticate(request))));
    });
    server_.emplace(std::move(options), std::move(router));
    server_->start();
  }
  ~HandshakeTest() override { std::filesystem::remove_all(folder_); }
  HandshakeTest(const HandshakeTest&) = delete;
  HandshakeTest& operator=(const HandshakeTest&) = delete;

  std::string who(const pki::Identity& identity, const std::string& token = {},
                  const std::string& server_name = "127.0.0.1") {
    const net::TlsClientOptions tls{.ca = {.text = authority_.certificate()},
                                    .certificate = {.text = identity.certificate},
                                    .key = {.text = identity.key},
                                    .server_name = server_name};
    net::Client client({.port = server_->port(), .tls = net::make_tls_context(tls)});
    net::Request request{.target = "/who"};
    if (!token.empty()) request.headers.add("Authorization", "Bearer " + token);
    return client.fetch(std::move(request)).body;
  }

  const std::filesystem::path folder_;
  const SystemClock clock_;
  const Time now_;
  const pki::Authority authority_;
  const Authenticator authenticator_;
  std::optional<net::Server> server_;
};

TEST_F(HandshakeTest, ACertificateNamesUserAndGroups) {
  const pki::Identity alice = authority_.issue_client("alice", {"devs", "ops"}, 1h, now_);

  EXPECT_EQ(who(alice), R"({"username":"alice","groups":["devs","ops","system:authenticated"]})");
}

TEST_F(HandshakeTest, TokensWorkWithoutACertificate) {
  EXPECT_EQ(who({}, "secret"), R"({"username":"admin","groups":["system:authenticated"]})");
  EXPECT_EQ(who({}), R"({"username":"system:anonymous","groups":["system:unauthenticated"]})");
}

TEST_F(HandshakeTest, TheServerIsKnownByItsNames) {
  EXPECT_NE(who({}, {}, "kubernetes.default.svc"), "");
  EXPECT_NE(who({}, {}, "hearth.test"), "");
  EXPECT_THROW(who({}, {}, "elsewhere.test"), Error);
}

TEST_F(HandshakeTest, CertificatesThatAreOverOrOfOthersAreRefused) {
  const pki::Identity old = authority_.issue_client("alice", {}, 1h, now_ - 2h);
  const pki::Authority other(folder_ / "other", now_);
  const pki::Identity foreign = other.issue_client("alice", {kMasters.data()}, 1h, now_);
  const pki::Identity server = authority_.server({"hearth.test"}, now_);

  EXPECT_THROW(who(old), Error);
  EXPECT_THROW(who(foreign), Error);
  EXPECT_THROW(who(server), Error) << "a server's certificate is no client's";
}

}  // namespace
}  // namespace hearth::access
