// Metrics, logs, the network and teams.
#include "base/time_text.h"
#include "e2b/words.h"
#include "e2b/world_testing.h"

namespace hearth::e2b {
namespace {

using std::chrono::seconds;

std::int64_t unix_seconds(Time time) {
  return std::chrono::floor<seconds>(time).time_since_epoch().count();
}

TEST(E2bMetrics, TellWhatASandboxUses) {
  World world;
  const std::string id = world.create();
  const std::string path = "/sandboxes/" + id + "/metrics";
  EXPECT_TRUE(world.ask("GET", path).body.as_array().empty());
  const std::int64_t began = unix_seconds(world.clock.now());
  world.reach.set_usage({.cpu_microseconds = 1'000'000,
                         .memory_bytes = 7 << 20,
                         .memory_limit_bytes = 512 << 20,
                         .disk_bytes = 4096,
                         .disk_limit_bytes = 1 << 30,
                         .cpu_millis = 2000});
  world.api->sample();
  world.clock.advance(seconds(5));
  // One core of two, for five seconds.
  world.reach.set_usage(
      {.cpu_microseconds = 6'000'000, .memory_bytes = 8 << 20, .cpu_millis = 2000});
  world.api->sample();
  const Answer answer = world.ask("GET", path);
  ASSERT_EQ(answer.body.as_array().size(), 2U);
  const Json& first = answer.body.at(0);
  EXPECT_EQ(model::number_at(first, {"timestampUnix"}), began);
  EXPECT_EQ(unix_seconds(*parse_rfc3339(model::text_at(first, {"timestamp"}))), began);
  EXPECT_EQ(model::number_at(first, {"cpuCount"}), 2);
  EXPECT_EQ(first.at("cpuUsedPct").to_number<double>(), 0);
  EXPECT_EQ(model::number_at(first, {"memUsed"}), 7 << 20);
  EXPECT_EQ(model::number_at(first, {"memTotal"}), 512 << 20);
  EXPECT_EQ(model::number_at(first, {"memCache"}), 0);
  EXPECT_EQ(model::number_at(first, {"diskUsed"}), 4096);
  EXPECT_EQ(model::number_at(first, {"diskTotal"}), 1 << 30);
  const Json& second = answer.body.at(1);
  EXPECT_EQ(second.at("cpuUsedPct").to_number<double>(), 50);
  // Where the container has no limit, what its template says.
  EXPECT_EQ(model::number_at(second, {"memTotal"}), 512 << 20);

  const auto within = [&](std::int64_t from, std::int64_t to) {
    return world.ask("GET", path + "?start=" + std::to_string(from) + "&end=" + std::to_string(to))
        .body.as_array()
        .size();
  };
  EXPECT_EQ(within(began - 100, began - 1), 0U);
  EXPECT_EQ(within(began, began), 1U);
  EXPECT_EQ(within(began, began + 5), 2U);
  for (const char* bad : {"start=x", "start=-1", "start=2&end=1", "end=99999999999999999999"})
    EXPECT_EQ(world.ask("GET", path + "?" + bad).status, 400U) << bad;
}

TEST(E2bMetrics, OfManyAtOnce) {
  World world;
  const std::string one = world.create();
  const std::string two = world.create();
  const std::string foreign = world.create(R"({"templateID":"own"})", world.blue);
  world.api->sample();
  const Answer answer =
      world.ask("GET", "/sandboxes/metrics?sandbox_ids=" + one + "," + foreign + ",i0," + two);
  ASSERT_EQ(answer.status, 200U);
  const JsonObject& all = answer.body.at("sandboxes").as_object();
  EXPECT_EQ(all.size(), 2U);
  EXPECT_TRUE(all.contains(one));
  EXPECT_TRUE(all.contains(two));
  EXPECT_EQ(world.ask("GET", "/sandboxes/metrics").status, 400U);
  EXPECT_EQ(world.ask("GET", "/sandboxes/metrics?sandbox_ids=A").status, 400U);
  std::string many = "i0";
  for (int i = 0; i < 100; ++i) many += ",i0";
  EXPECT_EQ(world.ask("GET", "/sandboxes/metrics?sandbox_ids=" + many).status, 400U);
}

TEST(E2bMetrics, StopWhileASandboxStandsStill) {
  World world;
  const std::string id = world.create(R"({"templateID":"base","autoPause":true})");
  const std::string path = "/sandboxes/" + id + "/metrics";
  world.api->sample();
  ASSERT_EQ(world.ask("POST", "/sandboxes/" + id + "/pause").status, 204U);
  world.clock.advance(seconds(5));
  world.api->sample();
  EXPECT_EQ(world.ask("GET", path).body.as_array().size(), 1U);
  EXPECT_EQ(world.ask("DELETE", "/sandboxes/" + id).status, 204U);
  const Answer gone = world.ask("GET", path);
  EXPECT_EQ(gone.status, 200U);
  EXPECT_EQ(model::to_text(gone.body), "[]");
}

TEST(E2bMetrics, OfTheLongPastAreFewer) {
  World world;
  const std::string id = world.create(R"({"templateID":"base","timeout":80000})");
  for (int i = 0; i < 2000; ++i) {
    world.api->sample();
    world.clock.advance(seconds(5));
  }
  const auto all = world.ask("GET", "/sandboxes/" + id + "/metrics").body.as_array();
  EXPECT_LE(all.size(), 240U);
  EXPECT_GE(all.size(), 120U);
  const auto at = [&](std::size_t i) { return *model::number_at(all[i], {"timestampUnix"}); };
  EXPECT_EQ(at(all.size() - 1) - at(all.size() - 2), 5);
  EXPECT_GT(at(1) - at(0), 5);
  EXPECT_GE(at(all.size() - 1) - at(0), 5 * 1000);
}

TEST(E2bTeams, AreTold) {
  World world;
  const auto ask = [&](const char* header, const std::string& value) {
    http::Request request;
    request.path = request.target = "/teams";
    request.headers.set(header, value);
    const http::Response response = world.router->find(request).route->unary(request);
    return std::pair(response.status, json(response.body));
  };
  for (const auto& [status, body] :
       {ask("Authorization", "Bearer " + world.blue), ask("X-API-Key", world.blue)}) {
    ASSERT_EQ(status, 200U);
    ASSERT_EQ(body.as_array().size(), 1U);
    EXPECT_EQ(model::text_at(body.at(0), {"teamID"}), "blue");
    EXPECT_EQ(model::text_at(body.at(0), {"name"}), "blue");
    EXPECT_EQ(model::text_at(body.at(0), {"apiKey"}), world.blue);
    EXPECT_TRUE(model::is_true_at(body.at(0), {"isDefault"}));
  }
  EXPECT_EQ(ask("Authorization", "Bearer sk_e2b_00").first, 401U);
  EXPECT_EQ(ask("Authorization", "Basic " + world.blue).first, 401U);
  EXPECT_EQ(ask("X-Other", world.blue).first, 401U);
}

TEST(E2bTeams, HaveMetrics) {
  World world;
  world.api->sample();
  world.clock.advance(seconds(5));
  world.create(R"({"templateID":"own"})", world.blue);
  world.create(R"({"templateID":"own"})", world.blue);
  world.create();
  world.api->sample();
  const auto ask = [&](const std::string& target) {
    return world.ask("GET", target, "", world.blue);
  };
  const Answer answer = ask("/teams/blue/metrics");
  ASSERT_EQ(answer.status, 200U);
  ASSERT_EQ(answer.body.as_array().size(), 2U);
  EXPECT_EQ(model::number_at(answer.body.at(0), {"concurrentSandboxes"}), 0);
  EXPECT_EQ(model::number_at(answer.body.at(1), {"concurrentSandboxes"}), 2);
  EXPECT_NEAR(answer.body.at(1).at("sandboxStartRate").to_number<double>(), 0.4, 0.001);
  const Answer most = ask("/teams/blue/metrics/max?metric=concurrent_sandboxes");
  EXPECT_EQ(most.body.at("value").to_number<double>(), 2);
  EXPECT_EQ(model::number_at(most.body, {"timestampUnix"}), unix_seconds(world.clock.now()));
  EXPECT_EQ(ask("/teams/blue/metrics/max?metric=concurrent_sandboxes&end=1")
                .body.at("value")
                .to_number<double>(),
            0);
  EXPECT_EQ(ask("/teams/blue/metrics/max?metric=other").status, 400U);
  EXPECT_EQ(ask("/teams/blue/metrics/max").status, 400U);
  EXPECT_EQ(ask("/teams/default/metrics").status, 403U);
  EXPECT_EQ(ask("/teams/none/metrics").status, 403U);
  EXPECT_EQ(ask("/teams/default/metrics/max?metric=concurrent_sandboxes").status, 403U);
}

TEST(E2bKeys, AreMadeRenamedAndRevoked) {
  World world;
  const Answer made = world.ask("POST", "/api-keys", R"({"name":"ci"})");
  ASSERT_EQ(made.status, 201U) << made.message();
  const std::string key = made.text("key");
  EXPECT_EQ(made.text("name"), "ci");
  EXPECT_EQ(model::text_at(made.body, {"mask", "prefix"}), "e2b_");
  EXPECT_EQ(model::number_at(made.body, {"mask", "valueLength"}), 40);
  EXPECT_TRUE(key.ends_with(model::text_at(made.body, {"mask", "maskedValueSuffix"})));
  EXPECT_EQ(world.ask("GET", "/templates", "", key).status, 200U);
  const std::string path = "/api-keys/" + made.text("id");
  EXPECT_EQ(world.ask("PATCH", path, R"({"name":"other"})").status, 204U);
  const Answer all = world.ask("GET", "/api-keys");
  ASSERT_EQ(all.body.as_array().size(), 2U);
  for (const Json& each : all.body.as_array()) EXPECT_FALSE(each.as_object().contains("key"));
  // Another team's are not there.
  EXPECT_EQ(world.ask("PATCH", path, R"({"name":"x"})", world.blue).status, 404U);
  EXPECT_EQ(world.ask("DELETE", path, "", world.blue).status, 404U);
  EXPECT_EQ(world.ask("GET", "/api-keys", "", world.blue).body.as_array().size(), 1U);
  EXPECT_EQ(world.ask("DELETE", path).status, 204U);
  EXPECT_EQ(world.ask("DELETE", path).status, 404U);
  EXPECT_EQ(world.ask("GET", "/templates", "", key).status, 401U);
  EXPECT_EQ(world.ask("POST", "/api-keys", "{}").status, 400U);
  EXPECT_EQ(world.ask("POST", "/api-keys", R"({"name":"a\nb"})").status, 400U);
  EXPECT_EQ(world.ask("DELETE", "/api-keys/..%2Fx").status, 400U);
  EXPECT_EQ(world.ask("DELETE", "/api-keys/XYZ").status, 404U);
}

TEST(E2bKeys, GiveNoMoreThanTheyHave) {
  World world;
  const tenants::IssuedKey small = world.keys.issue(
      {.team = "default", .name = "small", .limits = {.sandboxes = 1}, .expires = {}});
  const Answer made = world.ask("POST", "/api-keys", R"({"name":"child"})", small.key);
  ASSERT_EQ(made.status, 201U);
  EXPECT_EQ(world.keys.find(made.text("key"))->limits.sandboxes, 1);
  const std::string red = world.keys.find(world.red)->id;
  EXPECT_EQ(world.ask("DELETE", "/api-keys/" + red, "", small.key).status, 403U);
  EXPECT_EQ(world.ask("PATCH", "/api-keys/" + red, R"({"name":"x"})", small.key).status, 403U);
  EXPECT_EQ(world.ask("DELETE", "/api-keys/" + small.info.id, "", small.key).status, 204U);
}

TEST(E2bNetworks, AreReplaced) {
  World world;
  const std::string id =
      world.create(R"({"templateID":"base","network":{"denyOut":["10.0.0.0/8"]}})");
  const std::string path = "/sandboxes/" + id + "/network";
  EXPECT_EQ(world.ask("PUT", path, R"({"allowOut":["1.1.1.1"],"denyOut":["0.0.0.0/0"]})").status,
            204U);
  EXPECT_EQ(world.reach.egress(id)->allow, (std::vector<std::string>{"1.1.1.1"}));
  EXPECT_EQ(world.reach.egress(id)->deny, (std::vector<std::string>{"0.0.0.0/0"}));
  Answer detail = world.ask("GET", "/sandboxes/" + id);
  EXPECT_EQ(model::to_text(detail.body.at_pointer("/network/allowOut")), R"(["1.1.1.1"])");
  EXPECT_EQ(world.ask("PUT", path, R"({"allow_internet_access":false})").status, 204U);
  EXPECT_EQ(world.reach.egress(id)->deny, (std::vector<std::string>{"0.0.0.0/0"}));
  EXPECT_TRUE(world.reach.egress(id)->allow.empty());
  detail = world.ask("GET", "/sandboxes/" + id);
  EXPECT_EQ(detail.body.at("allowInternetAccess"), Json(false));
  // What is left out is cleared.
  EXPECT_EQ(world.ask("PUT", path, "{}").status, 204U);
  EXPECT_TRUE(world.reach.egress(id)->deny.empty());
  detail = world.ask("GET", "/sandboxes/" + id);
  EXPECT_TRUE(detail.body.at("allowInternetAccess").is_null());
  EXPECT_FALSE(detail.body.as_object().contains("network"));
}

TEST(E2bNetworks, StayAsTheyWereWhenAChangeFails) {
  World world;
  const std::string id =
      world.create(R"({"templateID":"base","network":{"denyOut":["10.0.0.0/8"]}})");
  world.reach.fail("set_egress");
  EXPECT_EQ(world.ask("PUT", "/sandboxes/" + id + "/network", "{}").status, 503U);
  const Answer detail = world.ask("GET", "/sandboxes/" + id);
  EXPECT_EQ(model::to_text(detail.body.at_pointer("/network/denyOut")), R"(["10.0.0.0/8"])");
}

TEST(E2bNetworks, RefuseWhatCannotBe) {
  World world;
  const std::string id = world.create(R"({"templateID":"base","autoPause":true})");
  const std::string path = "/sandboxes/" + id + "/network";
  EXPECT_EQ(world.ask("PUT", path, R"({"denyOut":["example.com"]})").status, 400U);
  EXPECT_EQ(world.ask("PUT", path, R"({"allowOut":["example.com"]})").status, 400U);
  EXPECT_EQ(world.ask("PUT", path, R"({"allowOut":["1.2.3.4/33"]})").status, 400U);
  EXPECT_EQ(world.ask("PUT", path, R"({"allowOut":["1.2.3.4\u0000x"]})").status, 400U);
  EXPECT_EQ(world.ask("PUT", path, R"({"allowOut":"1.2.3.4"})").status, 400U);
  EXPECT_EQ(world.ask("PUT", path, R"({"egressProxy":{"address":"a:1"}})").status, 501U);
  EXPECT_EQ(world.ask("PUT", "/sandboxes/unknown/network", "{}").status, 404U);
  ASSERT_EQ(world.ask("POST", "/sandboxes/" + id + "/pause").status, 204U);
  EXPECT_EQ(world.ask("PUT", path, "{}").status, 409U);
}

TEST(E2bLogs, TellWhatHappened) {
  World world;
  const std::string id = world.create();
  world.clock.advance(seconds(10));
  world.events.record(world.sandbox(id), reconcile::EventType::warning, "Trouble", "Testing",
                      "something went wrong");
  world.events.record(world.client().get(client::kPods, "default", id),
                      reconcile::EventType::normal, "Started", "Starting", "its pod started");
  world.events.flush();
  const std::string path = "/sandboxes/" + id + "/logs";
  const Answer first = world.ask("GET", path);
  ASSERT_EQ(first.status, 200U);
  const auto& lines = first.body.at("logs").as_array();
  ASSERT_EQ(lines.size(), first.body.at("logEntries").as_array().size());
  ASSERT_GE(lines.size(), 3U);
  for (const Json& each : lines) {
    const Json line = json(model::text_at(each, {"line"}));
    for (const char* field : {"level", "logger", "message"})
      EXPECT_FALSE(model::text_at(line, {field}).empty()) << field;
    EXPECT_TRUE(parse_rfc3339(model::text_at(each, {"timestamp"})));
  }
  const auto messages = [&](const std::string& query) {
    std::vector<std::string> all;
    const Answer answer = world.ask("GET", "/v2" + path + "?" + query);
    for (const Json& each : answer.body.at("logs").as_array()) {
      EXPECT_TRUE(each.at("fields").is_object());
      all.emplace_back(model::text_at(each, {"message"}));
    }
    return all;
  };
  using Messages = std::vector<std::string>;
  EXPECT_EQ(messages("limit=1"), (Messages{"sandbox started"}));
  EXPECT_EQ(messages("level=warn"), (Messages{"something went wrong"}));
  EXPECT_EQ(messages("level=error"), Messages());
  EXPECT_EQ(messages("search=pod%20started"), (Messages{"its pod started"}));
  EXPECT_EQ(messages("direction=backward&level=warn"), (Messages{"something went wrong"}));
  EXPECT_EQ(messages("direction=backward").back(), "sandbox started");
  const std::int64_t later = unix_seconds(world.clock.now()) * 1000 - 5000;
  EXPECT_EQ(messages("cursor=" + std::to_string(later)).size(), 2U);
  EXPECT_EQ(messages("direction=backward&cursor=" + std::to_string(later)).size(),
            lines.size() - 2);
  EXPECT_EQ(
      world.ask("GET", path + "?start=" + std::to_string(later)).body.at("logs").as_array().size(),
      2U);
  for (const char* bad : {"limit=1001", "limit=x", "level=fatal", "direction=up", "cursor=x"})
    EXPECT_EQ(world.ask("GET", "/v2" + path + "?" + bad).status, 400U) << bad;
  EXPECT_EQ(world.ask("GET", path + "?start=x").status, 400U);
}

TEST(E2bLogs, OfAWarmSandboxBeginWithItsOwner) {
  World world;
  const std::string id = world.add_member();
  world.events.record(world.sandbox(id), reconcile::EventType::normal, "Pooled", "Testing",
                      "before it was anybody's");
  world.events.flush();
  world.clock.advance(seconds(10));
  ASSERT_EQ(world.create(), id);
  const Answer answer = world.ask("GET", "/v2/sandboxes/" + id + "/logs");
  const auto& entries = answer.body.at("logs").as_array();
  ASSERT_FALSE(entries.empty());
  EXPECT_EQ(model::text_at(entries[0], {"message"}), "sandbox started");
  for (const Json& each : entries)
    EXPECT_NE(model::text_at(each, {"message"}), "before it was anybody's");
}

TEST(E2bTeams, DoNotSeeEachOthersSandboxes) {
  World world;
  const std::string id = world.create(R"({"templateID":"own"})", world.blue);
  ASSERT_EQ(world.ask("POST", "/sandboxes/" + id + "/snapshots", "{}", world.blue).status, 201U);
  using Call = std::tuple<const char*, std::string, const char*>;
  for (const auto& [method, path, body] :
       {Call{"POST", "/fork", "{}"}, Call{"POST", "/snapshots", "{}"},
        Call{"PUT", "/network", "{}"}}) {
    const std::string target = "/sandboxes/" + id + path;
    EXPECT_EQ(world.ask(method, target, body).status, 404U) << target;
    EXPECT_EQ(world.ask(method, target, body, "").status, 401U) << target;
    EXPECT_EQ(world.ask(method, target, body, "e2b_" + std::string(40, '0')).status, 401U)
        << target;
    // Nor by a longer name.
    EXPECT_EQ(world.ask(method, "/sandboxes/blue%2F" + id + path, body).status, 400U) << target;
  }
  for (const auto& [before, after, nothing] :
       {std::tuple("/sandboxes/", "/logs", R"({"logs":[],"logEntries":[]})"),
        std::tuple("/v2/sandboxes/", "/logs", R"({"logs":[]})"),
        std::tuple("/sandboxes/", "/metrics", "[]")}) {
    for (const std::string& each : {id, std::string("i0")}) {
      const Answer answer = world.ask("GET", before + each + after);
      EXPECT_EQ(answer.status, 200U) << before << after;
      EXPECT_EQ(model::to_text(answer.body), nothing);
    }
    EXPECT_EQ(world.ask("GET", before + id + after, "", "").status, 401U);
    EXPECT_EQ(world.ask("GET", before + std::string("blue%2F") + id + after).status, 400U);
  }
  EXPECT_TRUE(world.ask("GET", "/snapshots").body.as_array().empty());
  EXPECT_TRUE(world.ask("GET", "/snapshots?sandboxID=" + id).body.as_array().empty());
  EXPECT_TRUE(world.ask("GET", "/snapshots?name=blue/own").body.as_array().empty());
  const Answer own = world.ask("GET", "/snapshots", "", world.blue);
  ASSERT_EQ(own.body.as_array().size(), 1U);
  const std::string snapshot(model::text_at(own.body.at(0), {"snapshotID"}));
  EXPECT_EQ(world.ask("DELETE", "/templates/" + snapshot).status, 404U);
  EXPECT_EQ(world.ask("GET", "/templates/" + snapshot).status, 404U);
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", R"({"templateID":")" + snapshot + R"("})").status,
            404U);
}

}  // namespace
}  // namespace hearth::e2b
