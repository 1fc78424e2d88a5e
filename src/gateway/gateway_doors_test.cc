// Whom requests are for, and who may.
#include "gateway/gateway_testing_internal.h"
#include "gateway/table.h"

namespace hearth::gateway {
namespace {

TEST(GatewayDoors, FindsSandboxesByHostByPathAndBySignature) {
  House house;
  Program program(echo);
  house.reach.open(8000, program.port());
  house.reach.open(49983, program.port());
  house.make_sandbox();

  Peer client = house.connect();
  EXPECT_TRUE(client.ask(fmt::format("GET /h HTTP/1.1\r\nHost: 8000-{}.x.test:1\r\n\r\n", kId))
                  .body.starts_with("GET /h\n"));
  EXPECT_TRUE(
      client.ask(fmt::format("GET /h HTTP/1.1\r\nHost: 8000-{}-machine.x.test\r\n\r\n", kId))
          .body.starts_with("GET /h\n"));
  EXPECT_TRUE(
      client.ask(fmt::format("GET /sandboxes/{}/8000/p?q=1 HTTP/1.1\r\nHost: x\r\n\r\n", kId))
          .body.starts_with("GET /p?q=1\n"));
  EXPECT_TRUE(client.ask(fmt::format("GET /sandboxes/{}/8000?q=1 HTTP/1.1\r\nHost: x\r\n\r\n", kId))
                  .body.starts_with("GET /?q=1\n"));
  // printf 'a b:read:user:envd-iabcdefghij0123456789:99' | openssl dgst -sha256 -binary | base64
  const std::string signed_query =
      "path=a+b&username=user&signature_expiration=99&signature="
      "v1_wAlzXabmEEb%2Bvge6XBTBswwJG3alfmJRFnNS11e6EJg";
  EXPECT_TRUE(client.ask(fmt::format("GET /files?{} HTTP/1.1\r\nHost: x\r\n\r\n", signed_query))
                  .body.starts_with("GET /files?path=a+b&"));
  const Answer other = client.ask(
      fmt::format("POST /files?{} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", signed_query));
  EXPECT_EQ(other.head.status, 401U);
  EXPECT_EQ(other.body, R"({"code":401,"message":"invalid signature"})");
  EXPECT_EQ(client
                .ask(fmt::format("OPTIONS /files?{} HTTP/1.1\r\nHost: x\r\nOrigin: http://a\r\n"
                                 "Access-Control-Request-Method: GET\r\n\r\n",
                                 signed_query))
                .head.status,
            204U);
}

TEST(GatewayDoors, CallsAboutASandboxAreTheControlPlanesWhateverNamesIt) {
  House house({.control = [](const http::Request& asked, const auto& reply) {
    reply({.status = 200, .headers = {}, .body = asked.target});
  }});
  Program program(echo);
  house.reach.open(49983, program.port());
  house.make_sandbox();
  Peer client = house.connect();
  const std::string path = "/sandboxes/" + kId + "/connect";
  EXPECT_EQ(client.ask(request("GET " + path, 49983, "X-API-Key: e2b_1\r\n")).body, path);
  EXPECT_NE(client.ask(request("GET " + path, 49983)).body, path) << "without a key it is envd's";
}

TEST(GatewayDoors, EachRequestOfAConnectionShowsItsOwnToken) {
  House house;
  Program program(echo);
  house.reach.open(49983, program.port());
  const SandboxWords other{.name = "iother",
                           .annotations = {{std::string(model::kAccessAnnotation), "token"}}};
  house.make_sandbox({.annotations = other.annotations});
  house.make_sandbox(other);
  const auto asks = [](std::string_view id, std::string_view token, std::string_view path) {
    return fmt::format(
        "GET {} HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: {}\r\nE2b-Sandbox-Port: 49983\r\n{}\r\n",
        path, id, token.empty() ? "" : fmt::format("X-Access-Token: {}\r\n", token));
  };

  // All at once: what one was allowed says nothing about the next, of this sandbox or another's.
  Peer client = house.connect();
  client.send(asks(kId, "envd-" + kId, "/1") + asks(kId, "", "/2") +
              asks("iother", "envd-" + kId, "/3") + asks("iother", "envd-iother", "/4") +
              asks(kId, "envd-iother", "/5") + asks(kId, "envd-" + kId, "/6"));
  EXPECT_TRUE(client.read_answer().body.starts_with("GET /1\n"));
  EXPECT_EQ(client.read_answer().head.status, 401U);
  EXPECT_EQ(client.read_answer().head.status, 401U);
  EXPECT_TRUE(client.read_answer().body.starts_with("GET /4\n"));
  EXPECT_EQ(client.read_answer().head.status, 401U);
  EXPECT_TRUE(client.read_answer().body.starts_with("GET /6\n"));
}

TEST(GatewayDoors, SendsEverythingElseToTheControlPlane) {
  House house(
      {.control = [](const http::Request& asked, const std::function<void(http::Response)>& reply) {
        reply(http::json_response(200, fmt::format("{} {} {}", asked.method, asked.target,
                                                   asked.headers.value("X-API-Key"))));
      }});

  Peer client = house.connect();
  for (const char* target :
       {"/sandboxes", "/sandboxes/iabc/pause", "/v2/templates", "/files?path=x"}) {
    const Answer answer = client.ask(
        fmt::format("GET {} HTTP/1.1\r\nHost: api.x\r\nX-API-Key: e2b_1\r\n\r\n", target));
    EXPECT_EQ(answer.head.status, 200U);
    EXPECT_EQ(answer.body, fmt::format("GET {} e2b_1", target));
  }
  EXPECT_EQ(client.ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").body, R"({"status":"ok"})");
}

TEST(GatewayDoors, WithoutAControlPlaneSaysSo) {
  House house;
  Peer client = house.connect();
  EXPECT_EQ(client.ask("GET /sandboxes HTTP/1.1\r\nHost: x\r\n\r\n").head.status, 404U);
}

TEST(GatewayDoors, SpeaksAsSandboxRouterToThoseWhoDo) {
  House house;
  Program program(echo);
  house.reach.open(8888, program.port());
  house.make_sandbox({.name = "my-box", .ns = "default", .labels = {}});

  Peer client = house.connect();
  const Answer answer = client.ask(
      "GET /run HTTP/1.1\r\nHost: x\r\nX-Sandbox-ID: my-box\r\nAuthorization: Bearer t\r\n\r\n");
  EXPECT_TRUE(answer.body.starts_with("GET /run\nHost: localhost:8888\n")) << answer.body;
  EXPECT_EQ(answer.body.find("Authorization"), std::string::npos);
  EXPECT_EQ(answer.body.find("X-Sandbox"), std::string::npos);

  const auto refused = [&](std::string_view fields, unsigned status, std::string_view detail) {
    const Answer no = client.ask(fmt::format("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", fields));
    EXPECT_EQ(no.head.status, status) << fields;
    EXPECT_EQ(no.body, fmt::format(R"({{"detail":"{}"}})", detail));
  };
  refused("X-Sandbox-Port: 80\r\n", 400, "X-Sandbox-ID header is required.");
  refused("X-Sandbox-ID: My\r\n", 400, "Invalid sandbox ID format.");
  refused("X-Sandbox-ID: m\r\nX-Sandbox-Namespace: a b\r\n", 400, "Invalid namespace format.");
  refused("X-Sandbox-ID: m\r\nX-Sandbox-Port: 65536\r\n", 400, "Invalid port format.");
  refused("X-Sandbox-ID: my-box\r\nX-Sandbox-Pod-IP: 127.0.0.1\r\n", 400,
          "Invalid target IP address.");
  refused("X-Sandbox-ID: nobody\r\n", 502, "Could not connect to the backend sandbox: nobody");
  // Somebody else's address is nobody's.
  refused("X-Sandbox-ID: my-box\r\nX-Sandbox-Pod-IP: 10.9.9.9\r\n", 502,
          "Could not connect to the backend sandbox: my-box");
}

TEST(GatewayDoors, RouterTokenIsAskedFor) {
  House house({.router_token = "secret"});
  Program program(echo);
  house.reach.open(8888, program.port());
  house.make_sandbox({.name = "my-box", .ns = "default", .labels = {}});

  Peer client = house.connect();
  const auto ask = [&](std::string_view field) {
    return client.ask(
        fmt::format("GET / HTTP/1.1\r\nHost: x\r\nX-Sandbox-ID: my-box\r\n{}\r\n", field));
  };
  EXPECT_EQ(ask("").body, R"({"detail":"Missing or invalid Authorization header."})");
  EXPECT_EQ(ask("Authorization: Bearer wrong\r\n").body, R"({"detail":"Invalid token."})");
  EXPECT_EQ(ask("Authorization: Bearer secret\r\n").head.status, 200U);
}

TEST(GatewayDoors, BeingOnThisMachineIsNoProofForPagesAndProxies) {
  House house;
  Program program(echo);
  house.reach.open(8888, program.port());
  house.make_sandbox({.name = "my-box", .ns = "default", .labels = {}});
  Peer client = house.connect();
  const auto status = [&](std::string_view field) {
    return client
        .ask(fmt::format("GET / HTTP/1.1\r\nHost: x\r\nX-Sandbox-ID: my-box\r\n{}\r\n", field))
        .head.status;
  };
  EXPECT_EQ(status(""), 200U);
  for (const char* field :
       {"Origin: http://127.0.0.1:8090\r\n", "Origin: null\r\n", "Sec-Fetch-Site: same-origin\r\n",
        "X-Forwarded-For: 10.0.0.1\r\n", "Forwarded: for=1.2.3.4\r\n", "Via: 1.1 proxy\r\n"})
    EXPECT_EQ(status(field), 403U) << field;
}

// Of a kind that has no token: nobody could have signed anything.
TEST(GatewayDoors, ASignatureIsWorthNothingWhereNobodyCanSign) {
  House house;
  Program program(echo);
  house.reach.open(49983, program.port());
  house.make_sandbox({.name = "my-box",
                      .ns = "default",
                      .labels = {},
                      .annotations = {{std::string(model::kAccessAnnotation), "token"}}});
  Peer client = house.connect();
  for (const char* query :
       {"", "&signature=v1_x", "&signature=v1_47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"})
    EXPECT_EQ(client
                  .ask(fmt::format("GET /files?path=x{} HTTP/1.1\r\nHost: x\r\n"
                                   "X-Sandbox-ID: my-box\r\nX-Sandbox-Port: 49983\r\n\r\n",
                                   query))
                  .head.status,
              401U);
}

TEST(GatewayDoors, TellsOfPortsThatStayClosedAndWaitsForThoseThatOpen) {
  House house;
  Program program(echo);
  house.make_sandbox();

  Peer client = house.connect();
  const Answer closed = client.ask(request("GET /"));
  EXPECT_EQ(closed.head.status, 502U);
  EXPECT_EQ(
      closed.body,
      fmt::format(R"({{"sandboxId":"{}","message":"The sandbox is running but port is not open",)"
                  R"("port":8000,"code":502}})",
                  kId));
  client.send(request("GET /"));
  const int before = house.reach.dials();
  House::comes_true([&] { return house.reach.dials() > before; });
  house.reach.open(8000, program.port());
  EXPECT_EQ(client.read_answer().head.status, 200U);
}

TEST(GatewayDoors, IdsThatNobodyKnowsAreNotFound) {
  House house;
  Peer client = house.connect();
  EXPECT_EQ(
      client.ask(request("GET /health", 49983)).body,
      fmt::format(R"({{"sandboxId":"{}","message":"The sandbox was not found","code":502}})", kId));
  const Answer page = client.ask(request("GET /", 8000, "User-Agent: Mozilla/5.0\r\n"));
  EXPECT_EQ(page.head.status, 502U);
  EXPECT_TRUE(page.body.starts_with("<!doctype html>"));
}

TEST(GatewayDoors, AsksForTokens) {
  House house({.key_owner = [](std::string_view key) {
    return KeyOwner{.ns = key == "e2b_ours" ? "default" : key == "e2b_theirs" ? "other" : ""};
  }});
  Program program(echo);
  for (const int port : {8000, 49983, 49999}) {
    house.reach.open(static_cast<std::uint16_t>(port), program.port());
  }
  house.make_sandbox({.annotations = {{std::string(model::kTrafficAnnotation), "token"}}});

  Peer client = house.connect();
  const auto status = [&](std::string_view line, std::uint16_t port, std::string_view fields = "") {
    return client.ask(request(line, port, fields)).head.status;
  };
  const std::string envd = fmt::format("X-Access-Token: envd-{}\r\n", kId);
  const std::string traffic = fmt::format("e2b-traffic-access-token: traffic-{}\r\n", kId);
  EXPECT_EQ(status("GET /files?path=x", 49983), 401U);
  EXPECT_EQ(status("GET /files?path=x", 49983, "X-Access-Token: no\r\n"), 401U);
  EXPECT_EQ(status("GET /files?path=x", 49983, envd), 200U);
  EXPECT_EQ(status("GET /files?path=x&signature=y", 49983), 401U);
  // printf 'x:read::envd-iabcdefghij0123456789' | openssl dgst -sha256 -binary | base64
  constexpr std::string_view kSigned =
      "/files?path=x&signature=v1_ulkeZcLmSGKd71Ozbjl2A/ErJM/bAGbda8E%2BCf/3oC0";
  EXPECT_EQ(status(fmt::format("GET {}", kSigned), 49983), 200U);
  EXPECT_EQ(status(fmt::format("PUT {}", kSigned), 49983), 401U);
  EXPECT_EQ(client.ask(request("GET /files?path=x", 49983)).body,
            R"({"code":401,"message":"missing signature query parameter"})");
  EXPECT_EQ(client.ask(request("GET /files?path=x", 49983, "X-Access-Token: no\r\n")).body,
            R"({"code":401,"message":"access token present in header but does not match"})");
  EXPECT_EQ(status("GET /health", 49983), 200U);
  EXPECT_EQ(status("POST /init", 49983, envd + "Content-Length: 0\r\n"), 404U);
  EXPECT_EQ(status("POST //%69nit/", 49983, envd + "Content-Length: 0\r\n"), 404U);
  EXPECT_EQ(status("GET /", 8000), 403U);
  EXPECT_EQ(status("GET /", 8000, traffic), 200U);
  EXPECT_EQ(status("GET /", 49999, envd), 403U);
  // Another way in is no way around.
  EXPECT_EQ(client
                .ask(fmt::format("GET / HTTP/1.1\r\nHost: x\r\nX-Sandbox-ID: {}\r\n"
                                 "X-Sandbox-Port: 8000\r\n\r\n",
                                 kId))
                .head.status,
            403U);
  // And none of it reaches the sandbox.
  const Answer seen =
      client.ask(request("GET /", 8000, traffic + envd + "X-API-Key: e2b_ours\r\nX-Other: 1\r\n"));
  EXPECT_EQ(seen.body.find("traffic-"), std::string::npos);
  EXPECT_EQ(seen.body.find("envd-"), std::string::npos);
  EXPECT_EQ(seen.body.find("e2b_ours"), std::string::npos);
  EXPECT_EQ(client.ask(request("GET /", 8000, traffic + "Authorization: bearer e2b_ours\r\n"))
                .body.find("e2b_ours"),
            std::string::npos);
  EXPECT_NE(client.ask(request("GET /", 8000, traffic + "Authorization: Bearer mine\r\n"))
                .body.find("Bearer mine"),
            std::string::npos);

  house.gateway->learn(house.annotate(model::kAccessAnnotation, "team-key"));
  EXPECT_EQ(status("GET /health", 49983), 401U);
  EXPECT_EQ(status("GET /health", 49983, "X-API-Key: e2b_theirs\r\n"), 403U);
  EXPECT_EQ(status("GET /health", 49983, "X-API-Key: e2b_ours\r\n"), 200U);
}

TEST(GatewayDoors, ShowsTheHostThatItIsTold) {
  House house;
  Program program(echo);
  house.reach.open(8000, program.port());
  house.make_sandbox(
      {.annotations = {{std::string(model::kMaskHostAnnotation), "localhost:${PORT}"}}});
  Peer client = house.connect();
  EXPECT_NE(client.ask(request("GET /")).body.find("Host: localhost:8000\n"), std::string::npos);
}

TEST(GatewayDoors, ASecondSandboxWithAnIdDoesNotTakeItsPlace) {
  House house;
  Program program(echo);
  house.reach.open(8000, program.port());
  house.make_sandbox();
  house.api().create(
      client::kNamespaces,
      apiserver::json(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"evil"}})"));
  house.make_sandbox({.ns = "evil"});
  Peer client = house.connect();
  EXPECT_EQ(client.ask(request("GET /")).head.status, 200U);
  EXPECT_EQ(house.gateway->activity({"evil", kId})->last, Time());
  EXPECT_NE(house.gateway->activity({"default", kId})->last, Time());
}

// After a restart they are heard of in any order.
TEST(GatewayDoors, OfTwoSandboxesWithAnIdTheOlderHasIt) {
  Table table({});
  const auto put = [&](const char* ns, const char* created) {
    table.put(apiserver::json(fmt::format(R"({{"metadata":{{"name":"iab","namespace":"{0}",
      "uid":"{0}","resourceVersion":"1","creationTimestamp":"2026-01-02T03:04:{1}Z",
      "labels":{{"hearth.dev/front":"e2b"}}}}}})",
                                          ns, created)));
    return table.find_e2b("iab")->key.ns;
  };
  EXPECT_EQ(put("evil", "06"), "evil");
  EXPECT_EQ(put("good", "05"), "good");
  EXPECT_EQ(put("late", "07"), "good");
  EXPECT_EQ(put("same", "05"), "good");
}

TEST(GatewayDoors, CountsWhatPasses) {
  House house;
  Program program(echo);
  house.reach.open(8000, program.port());
  house.make_sandbox();
  Peer client = house.connect();
  client.ask(request("GET /"));
  client.ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string text = house.registry.render();
  EXPECT_NE(text.find(R"(sandbox_router_requests_total{method="GET",code="200",)"
                      R"(sandbox_namespace="default"} 1)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("sandbox_router_inflight_requests 0"), std::string::npos);
  EXPECT_NE(text.find("hearth_gateway_connections 1"), std::string::npos);
}

}  // namespace
}  // namespace hearth::gateway
