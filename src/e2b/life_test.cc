#include "e2b/state.h"
#include "e2b/world_testing.h"

namespace hearth::e2b {
namespace {

using std::chrono::seconds;

std::vector<std::string> ids_of(const Answer& answer) {
  std::vector<std::string> ids;
  for (const Json& each : answer.body.as_array())
    ids.emplace_back(model::text_at(each, {"sandboxID"}));
  return ids;
}

TEST(E2bLists, ShowWhatTheTeamHas) {
  World world;
  world.add_member();  // and stays idle
  const std::string member = world.create(R"({"templateID":"private","metadata":{"a":"b"}})");
  const std::string other = world.create(R"({"templateID":"base"})", world.blue);
  const Answer answer = world.ask("GET", "/v2/sandboxes");
  ASSERT_EQ(ids_of(answer), (std::vector<std::string>{member}));
  const Json& entry = answer.body.at(0);
  for (const char* field : {"templateID", "sandboxID", "clientID", "startedAt", "endAt", "cpuCount",
                            "memoryMB", "diskSizeMB", "state", "envdVersion"})
    EXPECT_TRUE(entry.as_object().contains(field)) << field;
  EXPECT_EQ(model::text_at(entry, {"state"}), "running");
  EXPECT_EQ(model::number_at(entry, {"cpuCount"}), 2);
  EXPECT_EQ(model::number_at(entry, {"memoryMB"}), 512);
  EXPECT_EQ(model::number_at(entry, {"diskSizeMB"}), 512);
  EXPECT_EQ(model::to_text(entry.at("metadata")), R"({"a":"b"})");
  EXPECT_EQ(ids_of(world.ask("GET", "/sandboxes")), (std::vector<std::string>{member}));
  EXPECT_EQ(ids_of(world.ask("GET", "/v2/sandboxes", "", world.blue)),
            (std::vector<std::string>{other}));
}

TEST(E2bLists, ComeInPages) {
  World world;
  std::vector<std::string> made;
  for (int i = 0; i < 3; ++i) {
    made.push_back(world.create());
    world.clock.advance(seconds(1));
  }
  Answer page = world.ask("GET", "/v2/sandboxes?limit=2");
  EXPECT_EQ(ids_of(page), (std::vector<std::string>{made[2], made[1]}));
  EXPECT_EQ(page.headers.value("X-Total-Running"), "3");
  const std::string next(page.headers.value("X-Next-Token"));
  ASSERT_FALSE(next.empty());
  page = world.ask("GET", "/v2/sandboxes?limit=2&nextToken=" + next);
  EXPECT_EQ(ids_of(page), (std::vector<std::string>{made[0]}));
  EXPECT_EQ(page.headers.find("X-Next-Token"), nullptr);
  page = world.ask("GET", "/v2/sandboxes?limit=2&order=asc");
  EXPECT_EQ(ids_of(page), (std::vector<std::string>{made[0], made[1]}));
  page = world.ask("GET", "/v2/sandboxes?order=asc&nextToken=" +
                              std::string(page.headers.value("X-Next-Token")));
  EXPECT_EQ(ids_of(page), (std::vector<std::string>{made[2]}));
  EXPECT_EQ(world.ask("GET", "/v2/sandboxes?nextToken=nonsense").status, 400U);
  EXPECT_EQ(world.ask("GET", "/v2/sandboxes?limit=0").status, 400U);
}

TEST(E2bLists, CanBeNarrowed) {
  World world;
  const std::string first = world.create(R"({"templateID":"base","metadata":{"k":"a&b","x":"1"}})");
  world.clock.advance(seconds(1));
  const std::string second = world.create(R"({"templateID":"private","metadata":{"x":"1"}})");
  const auto list = [&](const std::string& query) {
    return ids_of(world.ask("GET", "/v2/sandboxes?" + query));
  };
  using Ids = std::vector<std::string>;
  EXPECT_EQ(list("metadata=x%253D1"), (Ids{second, first}));
  EXPECT_EQ(list("metadata=k%253Da%252526b%2526x%253D1"), (Ids{first}));
  EXPECT_EQ(list("metadata=x%253D2"), Ids());
  EXPECT_EQ(list("template=private"), (Ids{second}));
  EXPECT_EQ(list("template=nothing"), Ids());
  EXPECT_EQ(list("state=paused"), Ids());
  EXPECT_EQ(list("state=running,paused"), (Ids{second, first}));
  const Answer detail = world.ask("GET", "/sandboxes/" + second);
  EXPECT_EQ(list("startedAfter=" + detail.text("startedAt")), (Ids{second}));
  EXPECT_EQ(world.ask("GET", "/v2/sandboxes?state=paused").headers.find("X-Total-Running"),
            nullptr);
}

TEST(E2bDetails, TellOfOneSandbox) {
  World world;
  const std::string id = world.create(
      R"({"templateID":"base","timeout":60,"autoPause":true,"autoResume":{"enabled":true}})");
  const Answer detail = world.ask("GET", "/sandboxes/" + id);
  ASSERT_EQ(detail.status, 200U);
  EXPECT_EQ(detail.text("sandboxID"), id);
  EXPECT_EQ(detail.text("envdAccessToken"), world.tokens.envd_token({"default", id}));
  EXPECT_EQ(model::to_text(detail.body.at("lifecycle")),
            R"({"autoResume":true,"onTimeout":"pause"})");
  EXPECT_EQ(detail.text("endAt"), time_text(world.clock.now() + seconds(60)));
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id + "-client").status, 200U);
  EXPECT_EQ(world.ask("GET", "/sandboxes/UPPER").status, 400U);
  const Answer unknown = world.ask("GET", "/sandboxes/i0");
  EXPECT_EQ(unknown.status, 404U);
  EXPECT_EQ(unknown.message(), "Sandbox \"i0\" doesn't exist or you don't have access to it");
}

TEST(E2bKills, EndASandboxAtOnce) {
  World world;
  const std::string id = world.create();
  EXPECT_EQ(world.ask("DELETE", "/sandboxes/" + id).status, 204U);
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).status, 404U);
  EXPECT_EQ(world.ask("DELETE", "/sandboxes/" + id).status, 404U);
  EXPECT_TRUE(ids_of(world.ask("GET", "/v2/sandboxes")).empty());
  EXPECT_TRUE(eventually([&] { return !world.exists(id); }));
}

using Words = std::vector<std::string>;

TEST(E2bGateways, AreToldBeforeTheClientIs) {
  World world;
  const std::string cold = world.create();
  EXPECT_EQ(world.told_of(cold), (Words{"running"}));
  const std::string id = world.add_member();
  ASSERT_EQ(world.create(), id);
  EXPECT_EQ(world.told_of(id), (Words{"running"}));
  const std::string at = "/sandboxes/" + id;
  EXPECT_EQ(world.ask("POST", at + "/timeout", R"({"timeout":100})").status, 204U);
  EXPECT_EQ(world.told_of(id), (Words{"running", "running"}));
  EXPECT_EQ(world.ask("POST", at + "/pause").status, 204U);
  EXPECT_EQ(world.told_of(id), (Words{"running", "running", "pausing"}));
  EXPECT_EQ(world.ask("POST", at + "/connect", R"({"timeout":100})").status, 201U);
  EXPECT_EQ(world.told_of(id), (Words{"running", "running", "pausing", "resuming", "running"}));
  EXPECT_EQ(world.ask("DELETE", at).status, 204U);
  EXPECT_EQ(world.told_of(id).back(), "deleted");
  EXPECT_EQ(world.ask("DELETE", at).status, 404U);
  EXPECT_EQ(std::ranges::count(world.told_of(id), "deleted"), 1);
}

TEST(E2bGateways, AreToldOfWhatFailedToo) {
  World world;
  const std::string member = world.add_member();
  world.reach.fail("outfit");
  const char* wanted = R"({"templateID":"base","envVars":{"A":"1"}})";
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", wanted).status, 503U);
  EXPECT_EQ(world.told_of(member), (Words{"deleted"}));
}

TEST(E2bKills, OthersMayKillItToo) {
  World world;
  const std::string id = world.create();
  world.client().remove(client::kSandboxes, "default", id);
  EXPECT_TRUE(eventually([&] { return world.ask("GET", "/sandboxes/" + id).status == 404; }));
}

TEST(E2bTimeouts, MoveTheEndBothWays) {
  World world;
  const std::string id = world.create();
  const auto end = [&] { return world.ask("GET", "/sandboxes/" + id).text("endAt"); };
  EXPECT_EQ(world.ask("POST", "/sandboxes/" + id + "/timeout", R"({"timeout":1000})").status, 204U);
  EXPECT_EQ(end(), time_text(world.clock.now() + seconds(1000)));
  EXPECT_EQ(world.ask("POST", "/sandboxes/" + id + "/timeout", R"({"timeout":10})").status, 204U);
  EXPECT_EQ(end(), time_text(world.clock.now() + seconds(10)));
  EXPECT_EQ(world.ask("POST", "/sandboxes/" + id + "/refreshes", R"({"duration":5})").status, 204U);
  EXPECT_EQ(end(), time_text(world.clock.now() + seconds(10))) << "it only extends";
  EXPECT_EQ(world.ask("POST", "/sandboxes/" + id + "/refreshes", R"({"duration":50})").status,
            204U);
  EXPECT_EQ(end(), time_text(world.clock.now() + seconds(50)));
  EXPECT_EQ(world.ask("POST", "/sandboxes/" + id + "/refreshes").status, 204U);
  EXPECT_EQ(end(), time_text(world.clock.now() + seconds(300)));
}

TEST(E2bTimeouts, AreChecked) {
  World world;
  const std::string id = world.create();
  const std::string path = "/sandboxes/" + id + "/timeout";
  EXPECT_EQ(world.ask("POST", path, "{}").status, 400U);
  EXPECT_EQ(world.ask("POST", path, R"({"timeout":-1})").status, 400U);
  EXPECT_EQ(world.ask("POST", path, R"({"timeout":"x"})").status, 400U);
  EXPECT_EQ(world.ask("POST", path, R"({"timeout":86401})").status, 400U);
  EXPECT_EQ(world.ask("POST", "/sandboxes/i0/timeout", R"({"timeout":1})").status, 404U);
  EXPECT_EQ(world.ask("POST", "/sandboxes/" + id + "/refreshes", R"({"duration":3601})").status,
            400U);
  EXPECT_EQ(world.ask("POST", path, R"({"timeout":0})").status, 204U);
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).status, 404U);
}

TEST(E2bTimeouts, AnEndThatHasPassedIsTheEnd) {
  World world;
  const std::string id = world.create(R"({"templateID":"base","timeout":60})");
  world.clock.advance(seconds(61));
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).status, 404U);
  EXPECT_TRUE(ids_of(world.ask("GET", "/v2/sandboxes")).empty());
}

TEST(E2bTimeouts, KillAtTheEndNotAWholeSecondLater) {
  World world;
  const std::string id = world.create(R"({"templateID":"base","timeout":3600})");
  // The Sandbox controller goes by `shutdownTime`, which stays an hour away.
  JsonObject annotations{{model::kEndAnnotation, time_text(world.clock.now())}};
  world.client().patch(
      client::kSandboxes, "default", id, client::PatchKind::merge,
      JsonObject{{"metadata", JsonObject{{"annotations", std::move(annotations)}}}});
  EXPECT_TRUE(eventually([&] { return !world.exists(id); }));
  EXPECT_EQ(world.told_of(id).back(), "deleted");
}

TEST(E2bTeams, DoNotSeeEachOther) {
  World world;
  const std::string id = world.create();
  struct Attempt {
    const char* method;
    std::string target;
    const char* body;
  };
  const std::string at = "/sandboxes/" + id;
  for (const Attempt& attempt : std::vector<Attempt>{
           {"GET", at, ""},
           {"GET", at + "-client", ""},
           {"DELETE", at, ""},
           {"POST", at + "/timeout", R"({"timeout":1})"},
           {"POST", at + "/refreshes", R"({"duration":1})"},
           {"POST", at + "/pause", ""},
           {"POST", at + "/resume", ""},
           {"POST", at + "/connect", R"({"timeout":1})"},
           {"POST", "/v2" + at + "/connect", ""},
       }) {
    const Answer foreign = world.ask(attempt.method, attempt.target, attempt.body, world.blue);
    EXPECT_EQ(foreign.status, 404U) << attempt.target;
    const Answer nobody = world.ask(attempt.method, attempt.target, attempt.body, "");
    EXPECT_EQ(nobody.status, 401U) << attempt.target;
  }
  for (const char* trick : {"/sandboxes/default%2F", "/sandboxes/..%2Fdefault%2F"})
    EXPECT_EQ(world.ask("GET", trick + id, "", world.blue).status, 400U) << trick;
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).status, 200U);
}

TEST(E2bTeams, SeeOnlyWhatThisDoorGaveThem) {
  World world;
  const std::string idle = world.add_member();
  world.client().create(client::kSandboxes, json(R"({"apiVersion":"agents.x-k8s.io/v1beta1",
      "kind":"Sandbox","metadata":{"namespace":"default","name":"mine"},
      "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"x"}]}}}})"));
  for (const std::string& name : {idle, std::string("mine")})
    for (const char* method : {"GET", "DELETE"})
      EXPECT_EQ(world.ask(method, "/sandboxes/" + name).status, 404U) << method << name;
  EXPECT_TRUE(world.exists(idle) && world.exists("mine"));
}

}  // namespace
}  // namespace hearth::e2b
