// TLS on either side.
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>

#include <openssl/ssl.h>

#include "gateway/gateway_testing_internal.h"
#include "net/client.h"
#include "net/router.h"
#include "net/server.h"
#include "pki/authority.h"

namespace hearth::gateway {
namespace {

class GatewayTls : public ::testing::Test {
 protected:
  GatewayTls() : authority(folder(), SystemClock().now()) {}
  GatewayTls(const GatewayTls&) = delete;
  GatewayTls& operator=(const GatewayTls&) = delete;
  ~GatewayTls() override { std::filesystem::remove_all(folder()); }

  const std::string& folder() {
    if (folder_.empty()) {
      folder_ = std::filesystem::temp_directory_path() / ("gateway-pki-" + random_hex(6));
    }
    return folder_;
  }
  net::TlsServerOptions server_tls() {
    const pki::Identity identity = authority.server({"box.test"}, SystemClock().now());
    return {.certificate = {.text = identity.certificate}, .key = {.text = identity.key}};
  }
  std::shared_ptr<net::TlsContext> client_tls() {
    return net::make_tls_context(
        net::TlsClientOptions{.ca = {.text = authority.certificate()}, .server_name = "box.test"});
  }

  std::string folder_;
  pki::Authority authority;
};

TEST_F(GatewayTls, CarriesRequestsOfEverySize) {
  GatewayOptions options;
  options.listens = {{}, {.tls = server_tls()}};
  House house(std::move(options));
  Program program(echo);
  house.reach.open(8000, program.port());
  house.make_sandbox();

  net::Client client({.port = house.gateway->ports()[1], .tls = client_tls()});
  for (const std::size_t size : {0U, 1U, 16'384U, 100'000U, 3'000'000U}) {
    const std::string body(size, 'x');
    const net::Response answer =
        client.fetch({.method = "POST",
                      .target = "/t",
                      .headers = {{"E2b-Sandbox-Id", kId}, {"E2b-Sandbox-Port", "8000"}},
                      .body = body});
    EXPECT_EQ(answer.status, 200U);
    EXPECT_TRUE(answer.body.ends_with("\n\n" + body)) << size;
    EXPECT_NE(answer.body.find("X-Forwarded-Proto: https\n"), std::string::npos);
  }
  EXPECT_EQ(program.connections(), 1U);
  EXPECT_EQ(house.gateway->connections(), 1U);
}

TEST_F(GatewayTls, GarbageInsteadOfAHandshakeEndsTheConnection) {
  GatewayOptions options;
  options.listens = {{.tls = server_tls()}};
  House house(std::move(options));
  Peer client = house.connect();
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  client.rest();
  House::comes_true([&] { return house.gateway->connections() == 0; });
}

TEST_F(GatewayTls, SpeaksTlsToPortsThatWantIt) {
  net::Router router;
  router.add("*", "/{rest...}", [](const net::Request& asked) {
    return net::text_response(200, "secure " + asked.target + " " + asked.body);
  });
  net::Server program({.tls = server_tls()}, std::move(router));
  program.start();
  House house;
  house.reach.open(8443, program.port());
  house.make_sandbox({.annotations = {{std::string(model::kHttpsPortsAnnotation), "443,8443"}}});

  Peer client = house.connect();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.ask(request("GET /x", 8443)).body, "secure /x ");
  }
  const std::string body(200'000, 'y');
  client.send(request("PUT /y", 8443, fmt::format("Content-Length: {}\r\n", body.size())) + body);
  EXPECT_EQ(client.read_answer().body, "secure /y " + body);
}

TEST_F(GatewayTls, APlainPortThatIsCalledSecureIsA502) {
  House house;
  Program program(echo);
  house.reach.open(8443, program.port());
  house.make_sandbox({.annotations = {{std::string(model::kHttpsPortsAnnotation), "8443"}}});
  Program closing([](Peer& peer) {
    peer.more();
    peer.send("HTTP/1.1 400 Bad Request\r\n\r\n");
    peer.close();
  });
  house.reach.open(8443, closing.port());
  EXPECT_EQ(house.connect().ask(request("GET /", 8443)).head.status, 502U);
}

TEST_F(GatewayTls, NobodyWaitsForASocketThatItsGuestMadeBlock) {
  House house;
  linux::Fd kept;
  house.reach.meddle([&](int socket_fd) { kept.reset(::dup(socket_fd)); });
  std::atomic<bool> is_greeted = false;
  std::atomic<bool> is_meddled = false;
  std::atomic<bool> is_over = false;
  const auto set = [](std::atomic<bool>& flag) {
    flag = true;
    flag.notify_all();
  };
  Program secure([&](Peer& peer) {
    peer.more();  // a handshake begins
    set(is_greeted);
    is_meddled.wait(false);
    peer.send("\x16");  // the first byte of a record: whoever waits for the next one waits long
    is_over.wait(false);
  });
  house.reach.open(8443, secure.port());
  house.make_sandbox({.annotations = {{std::string(model::kHttpsPortsAnnotation), "8443"}}});
  Peer waiting = house.connect();
  waiting.send(request("GET /", 8443));
  is_greeted.wait(false);
  linux::set_nonblocking(kept.get(), false);
  set(is_meddled);
  // When the byte has been read, by the lane that answers others, too.
  House::comes_true([&] {
    int unread = 0;
    return ::ioctl(kept.get(), FIONREAD, &unread) == 0 && unread == 0;
  });
  house.reach.meddle({});
  Program plain(echo);
  house.reach.open(8000, plain.port());
  EXPECT_EQ(house.connect().ask(request("GET /")).head.status, 200U);
  set(is_over);
}

}  // namespace
}  // namespace hearth::gateway
