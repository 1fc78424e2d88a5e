// What of a request reaches the access log, and what must not.
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/id.h"
#include "gateway/access_log.h"
#include "gateway/gateway_testing_internal.h"

namespace hearth::gateway {
namespace {

KeyOwner owner_of(std::string_view key) {
  if (key == "e2b_ours") return {.ns = "default", .id = "id-of-ours"};
  if (key == "e2b_theirs") return {.ns = "other", .id = "id-of-theirs"};
  return {};
}

// A house with a log, and a control plane that answers everything with "ok".
class LoggedHouse {
 public:
  LoggedHouse()
      : path_(std::filesystem::temp_directory_path() / ("gateway-log-" + random_hex(6))),
        log_(std::make_unique<AccessLog>(AccessLogOptions{.file = open_access_file(path_)})) {
    GatewayOptions options;
    options.control = [](const http::Request&, const std::function<void(http::Response)>& reply) {
      reply(http::json_response(200, "\"ok\""));
    };
    options.key_owner = owner_of;
    options.router_token = "router-secret";
    options.access_log = log_.get();
    house_ = std::make_unique<House>(std::move(options));
  }
  LoggedHouse(const LoggedHouse&) = delete;
  LoggedHouse& operator=(const LoggedHouse&) = delete;
  ~LoggedHouse() {
    end();
    std::filesystem::remove(path_);
  }

  House& house() { return *house_; }
  // Ends it all: what it has written.
  std::vector<std::string> end() {
    house_.reset();
    log_.reset();
    std::vector<std::string> lines;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

 private:
  const std::string path_;
  std::unique_ptr<AccessLog> log_;
  std::unique_ptr<House> house_;
};

model::Json parse(const std::string& line) {
  return model::parse_json(line).value;
}

TEST(GatewayAccessLog, HasALineForEachRequestWithItsBytesAndItsAnswer) {
  LoggedHouse logged;
  Program program(echo);
  logged.house().reach.open(8000, program.port());
  logged.house().make_sandbox();

  Peer client = logged.house().connect();
  const Answer echoed =
      client.ask(request("POST /a/b?q=1", 8000, "Content-Length: 5\r\n") + "hello");
  client.ask("GET /sandboxes?limit=1 HTTP/1.1\r\nHost: x\r\nX-API-Key: e2b_theirs\r\n\r\n");
  client.ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  client.ask("GET /templates HTTP/1.1\r\nHost: x\r\n\r\n");
  client.ask("nonsense\r\n\r\n");

  const std::vector<std::string> lines = logged.end();
  ASSERT_EQ(lines.size(), 5U);
  const model::Json first = parse(lines[0]);
  EXPECT_EQ(model::text_at(first, {"route"}), "e2b");
  EXPECT_EQ(model::text_at(first, {"namespace"}), "default");
  EXPECT_EQ(model::text_at(first, {"sandbox"}), kId);
  EXPECT_EQ(model::find(first, {"port"})->as_int64(), 8000);
  EXPECT_EQ(model::text_at(first, {"method"}), "POST");
  EXPECT_EQ(model::text_at(first, {"path"}), "/a/b");
  EXPECT_EQ(model::find(first, {"status"})->as_int64(), 200);
  EXPECT_EQ(model::find(first, {"bytes_in"})->as_int64(), 5);
  EXPECT_EQ(model::find(first, {"bytes_out"})->as_int64(), std::ssize(echoed.body));
  EXPECT_EQ(model::text_at(first, {"peer"}), "127.0.0.1");
  EXPECT_EQ(model::find(first, {"cut"}), nullptr);
  EXPECT_NE(lines[1].find(R"("route":"api","namespace":"other","method":"GET","path":"/sandboxes",)"
                          R"("status":200,"bytes_in":0,"bytes_out":4,)"),
            std::string::npos)
      << lines[1];
  EXPECT_NE(lines[1].find(R"("key":"id-of-theirs")"), std::string::npos);
  EXPECT_NE(lines[2].find(R"("route":"health")"), std::string::npos);
  // Nothing of the requests before it.
  EXPECT_NE(lines[3].find(R"("route":"api","method":"GET","path":"/templates")"),
            std::string::npos);
  EXPECT_EQ(lines[3].find("key"), std::string::npos);
  EXPECT_NE(lines[4].find(R"("route":"api","status":400,)"), std::string::npos) << lines[4];
}

TEST(GatewayAccessLog, HasNoSecrets) {
  LoggedHouse logged;
  Program program(echo);
  for (const int port : {8000, 8888, 49983})
    logged.house().reach.open(static_cast<std::uint16_t>(port), program.port());
  logged.house().make_sandbox({.annotations = {{std::string(model::kTrafficAnnotation), "token"}}});
  logged.house().make_sandbox({.name = "box", .labels = {}});

  Peer client = logged.house().connect();
  const std::string envd = fmt::format("X-Access-Token: envd-{}\r\n", kId);
  const std::string traffic = fmt::format("E2B-Traffic-Access-Token: traffic-{}\r\n", kId);
  client.ask(request("GET /files?path=secret", 49983, envd));
  client.ask(request("GET /files?path=x&signature=v1_secret", 49983));
  client.ask(request("GET /", 8000, traffic));
  client.ask(request("GET /", 8000, "X-API-Key: e2b_secret\r\nCookie: secret\r\n"));
  client.ask("GET /files?path=x&signature=v1_secret HTTP/1.1\r\nHost: x\r\n\r\n");
  client.ask(
      "GET / HTTP/1.1\r\nHost: x\r\nX-Sandbox-ID: box\r\n"
      "Authorization: Bearer router-secret\r\n\r\n");
  client.ask("GET http://user:secret@x/p?secret HTTP/1.1\r\nHost: x\r\n\r\n");
  // What stands where an id should.
  client.ask(
      "GET / HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: e2b_secret\r\nE2b-Sandbox-Port: 1\r\n\r\n");

  const std::vector<std::string> lines = logged.end();
  EXPECT_EQ(lines.size(), 8U);
  for (const std::string& line : lines) {
    for (const char* secret : {"secret", "envd-", "traffic-", "e2b_", "v1_", "?"})
      EXPECT_EQ(line.find(secret), std::string::npos) << secret << " in " << line;
  }
}

TEST(GatewayAccessLog, TellsWhatWasRefusedAndWhatWasCut) {
  LoggedHouse logged;
  Program program([](Peer& peer) {
    if (peer.read_head().empty()) return;
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    peer.rest();
  });
  logged.house().reach.open(8000, program.port());
  logged.house().make_sandbox();

  Peer client = logged.house().connect();
  client.ask(request("GET /files", 49983));
  client.send(request("GET /half"));
  EXPECT_EQ(client.read_head().substr(0, 12), "HTTP/1.1 200");
  EXPECT_EQ(client.read(4), "half");
  client.close();
  House::comes_true([&] { return logged.house().gateway->connections() == 0; });

  const std::vector<std::string> lines = logged.end();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NE(lines[0].find(R"("path":"/files","status":401,)"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find(R"("status":200,"bytes_in":0,"bytes_out":4,)"), std::string::npos)
      << lines[1];
  EXPECT_NE(lines[1].find(R"("cut":true)"), std::string::npos) << lines[1];
}

TEST(GatewayAccessLog, CountsTheBytesOfAnUpgrade) {
  LoggedHouse logged;
  Program program([](Peer& peer) {
    if (peer.read_head().empty()) return;
    peer.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello");
    EXPECT_EQ(peer.read(3), "abc");
    peer.close();
  });
  logged.house().reach.open(8000, program.port());
  logged.house().make_sandbox();

  Peer client = logged.house().connect();
  client.send(request("GET /up", 8000, "Connection: Upgrade\r\nUpgrade: x\r\n"));
  EXPECT_FALSE(client.read_head().empty());
  EXPECT_EQ(client.read(5), "hello");
  client.send("abc");
  EXPECT_EQ(client.rest(), "");
  client.close();
  House::comes_true([&] { return logged.house().gateway->connections() == 0; });

  EXPECT_NE(logged.house().registry.render().find("hearth_gateway_bytes_total{direction=\"up\"} 3"),
            std::string::npos);
  const std::vector<std::string> lines = logged.end();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find(R"("status":101,"bytes_in":3,"bytes_out":5,)"), std::string::npos)
      << lines[0];
  EXPECT_EQ(lines[0].find("cut"), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace hearth::gateway
