// Targets, heads as they are passed on, refusals, and the buffers between.
#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "gateway/access.h"
#include "gateway/passage.h"
#include "gateway/refusal.h"
#include "gateway/rewrite.h"
#include "gateway/table.h"
#include "gateway/target.h"

namespace hearth::gateway {
namespace {

class Parsed {
 public:
  explicit Parsed(std::string_view line, std::string_view fields = "Host: x\r\n")
      : text_(fmt::format("{} HTTP/1.1\r\n{}\r\n", line, fields)) {
    EXPECT_EQ(http::parse_request_head(text_, kHeadBytes, head), std::nullopt) << text_;
    target = find_target(head);
  }

 private:
  std::string text_;

 public:
  http::HeadView head;
  Target target;
};

TEST(Target, IsFoundWhereverItIsSaid) {
  const auto check = [](const Parsed& parsed, Dialect dialect, std::string_view id,
                        std::uint16_t port, std::string_view path_query) {
    EXPECT_EQ(parsed.target.problem_status, 0U);
    EXPECT_EQ(parsed.target.dialect, dialect);
    EXPECT_EQ(parsed.target.id, id);
    EXPECT_EQ(parsed.target.port, port);
    EXPECT_EQ(parsed.target.path_query, path_query);
  };
  check(Parsed("GET /a?b", "Host: x\r\ne2b-sandbox-id: iab-client\r\nE2B-SANDBOX-PORT: 1\r\n"),
        Dialect::e2b, "iab", 1, "/a?b");
  check(Parsed("GET /a", "Host: 65535-iab.some.test:8443\r\n"), Dialect::e2b, "iab", 65535, "/a");
  check(Parsed("GET http://80-iab.test/a?b", "Host: ignored\r\n"), Dialect::e2b, "iab", 80, "/a?b");
  check(Parsed("GET http://80-iab.test", "Host: ignored\r\n"), Dialect::e2b, "iab", 80, "");
  check(Parsed("GET /sandboxes/iab/80"), Dialect::e2b, "iab", 80, "");
  check(Parsed("GET /sandboxes/iab/80?x"), Dialect::e2b, "iab", 80, "?x");
  check(Parsed("GET /sandboxes/iab/80/y/../z"), Dialect::e2b, "iab", 80, "/y/../z");
  check(Parsed("GET /", "Host: x\r\nX-Sandbox-ID: 0-a\r\n"), Dialect::router, "0-a", 8888, "/");
  check(Parsed("OPTIONS *", "Host: 80-iab.test\r\n"), Dialect::e2b, "iab", 80, "*");
}

TEST(Target, IsTheControlPlaneWhereNothingNamesASandbox) {
  for (const char* line :
       {"GET /sandboxes/iab/pause", "GET /sandboxes/iab", "GET /sandboxes//80",
        "GET /v2/sandboxes/iab/80x", "GET /files?path=x", "GET /health", "POST /healthz"}) {
    const Parsed parsed(line);
    const bool is_bad_id = std::string_view(line) == "GET /sandboxes//80";
    EXPECT_EQ(parsed.target.dialect == Dialect::control, !is_bad_id) << line;
    EXPECT_EQ(parsed.target.problem_status, is_bad_id ? 400U : 0U) << line;
  }
  for (const char* host : {"api.x.test", "127.0.0.1:80", "80-iab", "-iab.test", "x80-iab.test",
                           "123456-iab.test", "localhost", "[::1]:80"}) {
    const Parsed parsed("GET /", fmt::format("Host: {}\r\n", host));
    EXPECT_EQ(parsed.target.dialect, Dialect::control) << host;
  }
}

TEST(Target, RefusesWhatIsNoIdOrPort) {
  for (const char* fields :
       {"Host: x\r\nE2b-Sandbox-Id: IAB\r\nE2b-Sandbox-Port: 1\r\n",
        "Host: x\r\nE2b-Sandbox-Id: iab\r\n",
        "Host: x\r\nE2b-Sandbox-Id: \r\nE2b-Sandbox-Port: 1\r\n",
        "Host: x\r\nE2b-Sandbox-Id: iab\r\nE2b-Sandbox-Port: 0\r\n",
        "Host: x\r\nE2b-Sandbox-Id: iab\r\nE2b-Sandbox-Port: 65536\r\n",
        "Host: x\r\nE2b-Sandbox-Id: i/../b\r\nE2b-Sandbox-Port: 1\r\n", "Host: 0-iab.test\r\n",
        "Host: 80-I_B.test\r\n", "Host: x\r\nX-Sandbox-ID: a.b\r\n",
        "Host: x\r\nX-Sandbox-ID: -a\r\n", "Host: x\r\nX-Sandbox-Pod-IP: 10.0.0.1\r\n"}) {
    EXPECT_EQ(Parsed("GET /", fields).target.problem_status, 400U) << fields;
  }
  for (const char* ip :
       {"127.0.0.1", "::1", "0.0.0.0", "::", "169.254.1.1", "fe80::1", "224.0.0.1", "ff02::1",
        "10.0.0.256", "10.0.0.1:80", "[::1]", "text", "", "::ffff:127.0.0.1"}) {
    const Parsed parsed("GET /",
                        fmt::format("Host: x\r\nX-Sandbox-ID: a\r\nX-Sandbox-Pod-IP: {}\r\n", ip));
    EXPECT_EQ(parsed.target.problem, "Invalid target IP address.") << ip;
  }
  for (const char* ip : {"10.0.0.1", "8.8.8.8", "fd00::1"}) {
    const Parsed parsed("GET /",
                        fmt::format("Host: x\r\nX-Sandbox-ID: a\r\nX-Sandbox-Pod-IP: {}\r\n", ip));
    EXPECT_EQ(parsed.target.problem_status, 0U) << ip;
  }
}

TEST(Rewrite, TheLargestHeadFits) {
  const std::string host = "80-iab." + std::string(254, 'h');
  std::string fields = fmt::format("Host: {}\r\n", host);
  const std::string filler = "A: " + std::string(kHeadBytes - fields.size() - 30, 'x') + "\r\n";
  const Parsed parsed("GET /", fields + filler);
  Route route;
  route.mask_host = std::string(255, 'm');
  const std::string peer(46, '1');
  std::vector<char> room(kBufferBytes);
  const RequestContext context{
      .target = &parsed.target, .route = &route, .peer = peer, .is_tls = true, .is_upgrade = true};
  EXPECT_GT(rewrite_request(parsed.head, context, room).size(), kHeadBytes);
}

TEST(Rewrite, TakesOutWhatIsBetweenNeighbours) {
  const std::string text =
      "HTTP/1.1 200 Fine\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n"
      "Content-Length: 0\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n";
  http::HeadView head;
  ASSERT_EQ(http::parse_response_head(text, false, head), std::nullopt);
  std::vector<char> room(kBufferBytes);
  EXPECT_EQ(rewrite_response(head, {}, room),
            "HTTP/1.1 200 Fine\r\nContent-Length: 0\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n");
  EXPECT_TRUE(
      rewrite_response(head, {.closes = true}, room).ends_with("\r\nConnection: close\r\n\r\n"));
}

TEST(Rewrite, ASandboxNamedByThePathIsAFolderOfItsOwn) {
  const Parsed parsed("GET /sandboxes/iab/8000/page?x=1",
                      "Host: h\r\nX-Forwarded-Prefix: /evil\r\n");
  EXPECT_EQ(parsed.target.prefix, "/sandboxes/iab/8000");
  Route route;
  std::vector<char> room(kBufferBytes);
  const std::string request(
      rewrite_request(parsed.head, {.target = &parsed.target, .route = &route, .peer = {}}, room));
  EXPECT_NE(request.find("\r\nX-Forwarded-Prefix: /sandboxes/iab/8000\r\n"), std::string::npos);
  EXPECT_EQ(request.find("evil"), std::string::npos);

  const auto answer = [&](const std::string& fields) {
    const std::string text = "HTTP/1.1 302 Found\r\n" + fields + "\r\n";
    http::HeadView head;
    EXPECT_EQ(http::parse_response_head(text, false, head), std::nullopt);
    const std::string made(rewrite_response(head, {.prefix = parsed.target.prefix}, room));
    return made.substr(20, made.size() - 22);
  };
  const std::string at = "/sandboxes/iab/8000";
  EXPECT_EQ(answer("location: /login?next=/\r\n"), "location: " + at + "/login?next=/\r\n");
  for (const std::string same :
       {"Location: //other.example/\r\n", "Location: http://h/x\r\n", "Location: next\r\n",
        "Location: \r\n", "Set-Cookie: a=b\r\n", "Set-Cookie: a=/; pathos=/x\r\n",
        "Set-Cookie: a; Path=x\r\n", "Set-Cookie: path=/x\r\n", "Set-Cookie: a;;;\r\n"})
    EXPECT_EQ(answer(same), same);
  EXPECT_EQ(answer("Set-Cookie: a=b; Secure;pAth=/x; HttpOnly\r\n"),
            "Set-Cookie: a=b; Secure;pAth=" + at + "/x; HttpOnly\r\n");
  EXPECT_EQ(answer("Service-Worker-Allowed: /\r\nETag: 1\r\n"), "ETag: 1\r\n");
}

TEST(Rewrite, ManyCookiesOfAFolderFit) {
  std::string text = "HTTP/1.1 200 OK\r\n";
  for (std::size_t i = 0; i < http::HeadView::kMostFields; ++i) text += "Set-Cookie: a;path=/\r\n";
  text += "\r\n";
  http::HeadView head;
  ASSERT_EQ(http::parse_response_head(text, false, head), std::nullopt);
  const std::string longest = "/sandboxes/i-" + std::string(kMostPrefixBytes - 15, 'i') + "/1";
  EXPECT_EQ(Parsed("GET " + longest + "/", "Host: h\r\n").target.prefix, longest);
  for (const std::string& more : {longest + "1", "/sandboxes/i-" + std::string(20'000, 'i') + "/1"})
    EXPECT_EQ(Parsed("GET " + more, "Host: h\r\n").target.problem_status, 400U);
  std::vector<char> room(kBufferBytes);
  EXPECT_EQ(rewrite_response(head, {.prefix = longest}, room).size(),
            text.size() + http::HeadView::kMostFields * longest.size());
}

TEST(Refusal, IsSafeToShow) {
  const RefusalContext context{.dialect = Dialect::e2b, .id = "<script>\"", .is_browser = true};
  const std::string page = render_refusal(kNotFound, context);
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;&quot;"), std::string::npos);
}

TEST(Passage, SendsAgainWhatIsStillWhole) {
  BufferPool pool;
  Passage passage(pool);
  const std::string_view text = "HEAD\r\n\r\n5\r\nhello\r\n0\r\n\r\nNEXT";
  std::ranges::copy(text, passage.room().begin());
  passage.filled(text.size());
  ASSERT_TRUE(passage.begin_body(8, {.kind = http::BodyKind::chunked}));
  EXPECT_TRUE(passage.is_framed());
  EXPECT_EQ(passage.ready(), "5\r\nhello\r\n0\r\n\r\n");
  passage.sent(9);
  passage.rewind();
  EXPECT_EQ(passage.ready(), "5\r\nhello\r\n0\r\n\r\n");
  passage.sent(passage.ready().size());
  EXPECT_TRUE(passage.is_whole());
  passage.begin_next();
  EXPECT_EQ(passage.bytes(), "NEXT");
}

TEST(Passage, MakesRoomAndSaysSo) {
  BufferPool pool;
  Passage passage(pool);
  passage.filled(passage.room().size());
  ASSERT_TRUE(passage.begin_body(10, {.kind = http::BodyKind::length, .length = 1 << 20}));
  EXPECT_EQ(passage.room().size(), 10U);  // the head's
  passage.sent(passage.ready().size());
  EXPECT_EQ(passage.room().size(), kBufferBytes);
  EXPECT_FALSE(passage.is_whole());
}

TEST(Table, ATokenIsMadeBeforeSomebodyWaitsForIt) {
  int made = 0;
  Table table({.envd_token = [&](const model::Key& key) {
    ++made;
    return "envd-" + key.name;
  }});
  const auto sandbox = [](int version, const std::string& labels) {
    return apiserver::json(fmt::format(R"({{"metadata":{{"name":"iab","namespace":"n","uid":"u",
      "resourceVersion":"{}","labels":{{{}}}}},
      "spec":{{"podTemplate":{{"metadata":{{"annotations":{{"hearth.dev/dress":"base"}}}}}}}},
      "status":{{"conditions":[{{"type":"Ready","status":"True"}}]}}}})",
                                       version, labels));
  };
  EXPECT_TRUE(table.put(sandbox(1, R"("agents.x-k8s.io/warm-pool-sandbox":"p")")));
  EXPECT_EQ(made, 1);
  EXPECT_TRUE(table.put(sandbox(2, R"("hearth.dev/front":"e2b")")));
  EXPECT_FALSE(table.put(sandbox(2, R"("hearth.dev/front":"e2b")")));
  EXPECT_FALSE(table.put(sandbox(1, R"("agents.x-k8s.io/warm-pool-sandbox":"p")")));
  EXPECT_EQ(made, 1);
  EXPECT_EQ(table.find_e2b("iab")->envd_token, "envd-iab");
  EXPECT_EQ(table.find_e2b("iab")->version, 2U);
}

TEST(Route, IsReadFromASandbox) {
  Route route;
  read_route(apiserver::json(R"({"metadata":{"name":"iab","namespace":"n","uid":"u",
      "resourceVersion":"7","labels":{"hearth.dev/front":"e2b"},"annotations":{
      "hearth.dev/https-ports":"443,x,8443,0,70000","hearth.dev/mask-request-host":"a b",
      "hearth.dev/access":"something-new","hearth.dev/traffic":"token",
      "hearth.dev/auto-resume":"true"}},
      "status":{"podIPs":["10.0.0.1"],"conditions":[{"type":"hearth.dev/Paused","status":"True"}]}})"),
             route);
  EXPECT_EQ(route.https_ports, (std::vector<std::uint16_t>{443, 8443}));
  EXPECT_EQ(route.mask_host, "");
  EXPECT_EQ(route.access, Access::token);
  EXPECT_TRUE(route.needs_traffic_token);
  EXPECT_TRUE(route.wakes);
  EXPECT_EQ(route.state, RouteState::turning);
  EXPECT_EQ(route.pod_ips, std::vector<std::string>{"10.0.0.1"});
  EXPECT_EQ(route.version, 7U);
}

}  // namespace
}  // namespace hearth::gateway
