#include "e2b/words.h"
#include "e2b/world_testing.h"

namespace hearth::e2b {
namespace {

std::string image_of(const Json& object) {
  return std::string(object.at_pointer("/spec/podTemplate/spec/containers/0/image").as_string());
}

std::vector<std::string> snapshot_ids(const Answer& answer) {
  std::vector<std::string> ids;
  for (const Json& each : answer.body.as_array())
    ids.emplace_back(model::text_at(each, {"snapshotID"}));
  return ids;
}

// The SandboxTemplate that an id without a name stands for.
std::string object_of(const std::string& snapshot) {
  return snapshot.substr(0, snapshot.find(':'));
}

TEST(E2bSnapshots, AreTemplatesThatStartFromTheFiles) {
  World world;
  const std::string id = world.create();
  const Answer made = world.ask("POST", "/sandboxes/" + id + "/snapshots", "{}");
  ASSERT_EQ(made.status, 201U) << made.message();
  const std::string snapshot = made.text("snapshotID");
  EXPECT_TRUE(snapshot.ends_with(":default")) << snapshot;
  EXPECT_TRUE(made.body.at("names").as_array().empty());
  const auto images = world.reach.images();
  ASSERT_EQ(images.size(), 1U);
  EXPECT_EQ(images.begin()->second, id);
  const Json object = world.client().get(client::kSandboxTemplates, "default", object_of(snapshot));
  EXPECT_EQ(image_of(object), images.begin()->first);
  EXPECT_EQ(model::label_of(object, kSnapshotLabel), id);
  EXPECT_EQ(model::text_at(object, {"spec", "networkPolicyManagement"}), "Unmanaged");
  // The source goes on, and others start from it.
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).text("state"), "running");
  const std::string other = world.create(R"({"templateID":")" + snapshot + R"("})");
  EXPECT_EQ(image_of(world.sandbox(other)), images.begin()->first);
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + other).text("templateID"), object_of(snapshot));
}

TEST(E2bSnapshots, OfAWarmSandboxForgetThePool) {
  World world;
  const std::string id = world.add_member();
  ASSERT_EQ(world.create(), id);
  const Answer made = world.ask("POST", "/sandboxes/" + id + "/snapshots");
  ASSERT_EQ(made.status, 201U) << made.message();
  const Json object =
      world.client().get(client::kSandboxTemplates, "default", object_of(made.text("snapshotID")));
  const JsonObject* labels =
      model::object_at(object, {"spec", "podTemplate", "metadata", "labels"});
  EXPECT_TRUE(labels == nullptr || labels->empty()) << model::to_text(object);
}

TEST(E2bSnapshots, AreNoWayAroundTheTemplatesRules) {
  World world;
  world.add_template("default", "guarded", "{}", R"({"hearth.dev/access":"team-key"})");
  std::string id;
  ASSERT_TRUE(eventually([&] {
    id = world.ask("POST", "/v2/sandboxes", R"({"templateID":"guarded"})").text("sandboxID");
    return !id.empty();
  }));
  const Answer made = world.ask("POST", "/sandboxes/" + id + "/snapshots");
  ASSERT_EQ(made.status, 201U) << made.message();
  const std::string again = world.create(R"({"templateID":")" + made.text("snapshotID") + R"("})");
  EXPECT_EQ(model::annotation_of(world.sandbox(again), model::kAccessAnnotation), "team-key");
}

TEST(E2bSnapshots, KnowWhoseTemplateItWas) {
  World world;
  tenants::create_team(world.client(), "aaa", {});
  const char* is_public = R"({"hearth.dev/public":"true"})";
  const char* rules = R"({"hearth.dev/access":"team-key","hearth.dev/https-ports":"8443"})";
  world.add_template("aaa", "guarded", is_public, rules);
  const auto create = [&] {
    std::string id;
    EXPECT_TRUE(eventually([&] {
      id = world.ask("POST", "/v2/sandboxes", R"({"templateID":"aaa/guarded"})").text("sandboxID");
      return !id.empty();
    }));
    return id;
  };
  const std::string id = create();
  const auto rules_of_snapshot = [&] {
    const Answer made = world.ask("POST", "/sandboxes/" + id + "/snapshots");
    EXPECT_EQ(made.status, 201U) << made.message();
    const Json object = world.client().get(client::kSandboxTemplates, "default",
                                           object_of(made.text("snapshotID")));
    const auto said = [&](std::string_view key) {
      return std::string(model::annotation_of(object, key));
    };
    const std::string policy(model::text_at(object, {"spec", "networkPolicyManagement"}));
    return std::vector{said(model::kAccessAnnotation), said(model::kHttpsPortsAnnotation), policy};
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(rules_of_snapshot(), (Words{"team-key", "8443", "Unmanaged"}));
  // The team's own of that name is another one.
  world.add_template("default", "guarded");
  ASSERT_TRUE(eventually([&] { return world.ask("GET", "/templates/guarded").status == 200; }));
  EXPECT_EQ(rules_of_snapshot(), (Words{"team-key", "8443", "Unmanaged"}));
  const auto listed = [&](const std::string& name) {
    return world.ask("GET", "/v2/sandboxes?template=" + name).body.as_array().size();
  };
  EXPECT_EQ(listed("guarded"), 0U);
  EXPECT_EQ(listed("aaa%2Fguarded"), 1U);
  const auto spawned = [&](const std::string& name) {
    return model::number_at(world.ask("GET", "/templates/" + name).body, {"spawnCount"});
  };
  EXPECT_EQ(spawned("guarded"), 0);
  EXPECT_EQ(spawned("aaa%2Fguarded"), 1);
  world.client().remove(client::kSandboxTemplates, "aaa", "guarded");
  ASSERT_TRUE(
      eventually([&] { return world.ask("GET", "/templates/aaa%2Fguarded").status == 404; }));
  const Words kept = rules_of_snapshot();
  EXPECT_EQ(kept[0], "team-key");
  EXPECT_EQ(kept[1], "8443");
}

TEST(E2bSnapshots, ThatAreDeletedMeanwhileLeaveTheirImageToWhoeverStartsFromThem) {
  World world;
  const std::string id = world.create();
  for (int i = 0; i < 20; ++i) {
    const std::string snapshot =
        world.ask("POST", "/sandboxes/" + id + "/snapshots").text("snapshotID");
    ASSERT_EQ(world.reach.images().size(), 1U) << "of this round alone";
    Answer made;
    {
      const std::jthread other(
          [&] { EXPECT_EQ(world.ask("DELETE", "/templates/" + snapshot).status, 204U); });
      made = world.ask("POST", "/v2/sandboxes", R"({"templateID":")" + snapshot + R"("})");
    }
    ASSERT_TRUE(made.status == 201 || made.status == 404) << made.status << made.message();
    if (made.status == 201) {
      ASSERT_EQ(world.reach.images().size(), 1U) << "round " << i;
      ASSERT_EQ(world.ask("DELETE", "/sandboxes/" + made.text("sandboxID")).status, 204U);
    }
    ASSERT_TRUE(eventually([&] { return world.reach.images().empty(); }));
  }
}

TEST(E2bSnapshots, HaveNamesThatMove) {
  World world;
  const std::string id = world.create();
  const auto snap = [&](const std::string& name) {
    return world.ask("POST", "/sandboxes/" + id + "/snapshots", R"({"name":")" + name + R"("})");
  };
  const Answer first = snap("Mine");
  EXPECT_EQ(first.text("snapshotID"), "default/mine:default");
  EXPECT_EQ(model::to_text(first.body.at("names")), R"(["default/mine:default"])");
  EXPECT_EQ(snap("mine:v2").text("snapshotID"), "default/mine:v2");
  EXPECT_EQ(snapshot_ids(world.ask("GET", "/snapshots?name=mine")).size(), 2U);
  EXPECT_EQ(snapshot_ids(world.ask("GET", "/snapshots?name=default/mine:v2")),
            (std::vector<std::string>{"default/mine:v2"}));
  const std::string before =
      image_of(world.sandbox(world.create(R"({"templateID":"default/mine:default"})")));
  EXPECT_EQ(snap("mine").status, 201U);
  // The name is the newest one's; the one before keeps its id.
  EXPECT_NE(image_of(world.sandbox(world.create(R"({"templateID":"mine"})"))), before);
  EXPECT_EQ(snapshot_ids(world.ask("GET", "/snapshots")).size(), 3U);
  EXPECT_EQ(snapshot_ids(world.ask("GET", "/snapshots?name=mine:default")).size(), 1U);
}

TEST(E2bSnapshots, HaveNamesThatManyMoveAtOnce) {
  World world;
  for (int i = 0; i < 2; ++i) {
    const std::string body = R"({"name":"mine:v)" + std::to_string(i) + "\"}";
    ASSERT_EQ(world.ask("POST", "/sandboxes/" + world.create() + "/snapshots", body).status, 201U);
  }
  const auto move = [&](int target, const std::string& tag) {
    const std::string body =
        R"({"target":"mine:v)" + std::to_string(target) + R"(","tags":[")" + tag + "\"]}";
    EXPECT_EQ(world.ask("POST", "/templates/tags", body).status, 201U);
  };
  for (int round = 0; round < 20; ++round) {
    const std::string tag = "t" + std::to_string(round);
    {
      std::vector<std::jthread> all;
      for (int i = 0; i < 4; ++i) all.emplace_back([&, i] { move(i % 2, tag); });
    }
    EXPECT_EQ(snapshot_ids(world.ask("GET", "/snapshots?name=mine:" + tag)).size(), 1U) << tag;
  }
}

TEST(E2bSnapshots, RefuseBadNames) {
  World world;
  const std::string id = world.create();
  const auto snap = [&](const std::string& name) {
    return world.ask("POST", "/sandboxes/" + id + "/snapshots", R"({"name":")" + name + R"("})")
        .status;
  };
  EXPECT_EQ(snap("a b"), 400U);
  EXPECT_EQ(snap("a.b"), 400U);
  EXPECT_EQ(snap("a:b:c"), 400U);
  EXPECT_EQ(snap("a:123e4567-e89b-12d3-a456-426614174000"), 400U);
  EXPECT_EQ(snap(std::string(129, 'a')), 400U);
  EXPECT_EQ(snap("blue/own"), 403U);
  EXPECT_EQ(snap("base"), 409U);
  EXPECT_EQ(world.ask("POST", "/sandboxes/" + id + "/snapshots", R"({"name":1})").status, 400U);
  EXPECT_TRUE(world.reach.images().empty());
  EXPECT_TRUE(snapshot_ids(world.ask("GET", "/snapshots")).empty());
}

TEST(E2bSnapshots, AreListedPageByPage) {
  World world;
  const std::string id = world.create();
  const std::string other = world.create();
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(world.ask("POST", "/sandboxes/" + id + "/snapshots").status, 201U);
  ASSERT_EQ(world.ask("POST", "/sandboxes/" + other + "/snapshots").status, 201U);
  EXPECT_EQ(snapshot_ids(world.ask("GET", "/snapshots?sandboxID=" + id)).size(), 3U);
  std::set<std::string> seen;
  std::string query = "?limit=3";
  for (int i = 0; i < 2; ++i) {
    const Answer page = world.ask("GET", "/snapshots" + query);
    for (const std::string& each : snapshot_ids(page)) EXPECT_TRUE(seen.insert(each).second);
    query = "?limit=3&nextToken=" + std::string(page.headers.value("X-Next-Token"));
    EXPECT_EQ(page.headers.find("X-Next-Token") != nullptr, i == 0);
  }
  EXPECT_EQ(seen.size(), 4U);
  for (const char* bad :
       {"limit=0", "limit=101", "limit=x", "nextToken=x", "sandboxID=A-B", "name=%20"})
    EXPECT_EQ(world.ask("GET", std::string("/snapshots?") + bad).status, 400U) << bad;
}

TEST(E2bSnapshots, AreListedTheNewestFirst) {
  World world;
  const std::string id = world.create();
  std::vector<std::string> made;
  for (int i = 0; i < 8; ++i) {
    made.push_back(world.ask("POST", "/sandboxes/" + id + "/snapshots").text("snapshotID"));
    world.clock.advance(std::chrono::milliseconds(1));
  }
  std::ranges::reverse(made);
  EXPECT_EQ(snapshot_ids(world.ask("GET", "/snapshots")), made);
  const Answer page = world.ask("GET", "/snapshots?limit=5");
  const std::string next(page.headers.value("X-Next-Token"));
  EXPECT_EQ(snapshot_ids(world.ask("GET", "/snapshots?nextToken=" + next)),
            (std::vector<std::string>(made.begin() + 5, made.end())));
}

TEST(E2bSnapshots, GoWithTheirImageOnceNothingUsesIt) {
  World world;
  const std::string id = world.create();
  const std::string snapshot =
      world.ask("POST", "/sandboxes/" + id + "/snapshots").text("snapshotID");
  const std::string user = world.create(R"({"templateID":")" + snapshot + R"("})");
  EXPECT_EQ(world.ask("DELETE", "/templates/" + snapshot).status, 204U);
  EXPECT_EQ(world.ask("DELETE", "/templates/" + snapshot).status, 404U);
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", R"({"templateID":")" + snapshot + R"("})").status,
            404U);
  // A pod of it may have to start again.
  EXPECT_EQ(world.reach.images().size(), 1U);
  EXPECT_EQ(world.ask("DELETE", "/sandboxes/" + user).status, 204U);
  EXPECT_TRUE(eventually([&] { return world.reach.images().empty(); }));
}

TEST(E2bSnapshots, CanBeDeletedByTheirEncodedName) {
  World world;
  const std::string id = world.create();
  ASSERT_EQ(world.ask("POST", "/sandboxes/" + id + "/snapshots", R"({"name":"mine:v1"})").status,
            201U);
  EXPECT_EQ(world.ask("DELETE", "/templates/default%2Fmine%3Av1").status, 204U);
  EXPECT_TRUE(eventually([&] { return world.reach.images().empty(); }));
}

TEST(E2bSnapshots, LeaveNothingWhenTheyFail) {
  World world;
  const std::string id = world.create();
  world.reach.fail("commit");
  EXPECT_EQ(world.ask("POST", "/sandboxes/" + id + "/snapshots").status, 503U);
  EXPECT_TRUE(snapshot_ids(world.ask("GET", "/snapshots")).empty());
  EXPECT_EQ(world.ask("POST", "/sandboxes/" + id + "/fork").status, 503U);
  EXPECT_EQ(world.ask("GET", "/v2/sandboxes").body.as_array().size(), 1U);
}

// To SDKs a 404 is a sandbox that is gone, a 409 one that is paused already, a 429 a limit.
TEST(E2bNodes, SpeakForThemselvesNotForTheApi) {
  World world;
  const std::string id = world.create(R"({"templateID":"base","envVars":{"A":"1"}})");
  const std::string at = "/sandboxes/" + id;
  struct Case {
    Code code;
    unsigned status;
  };
  for (const auto& [code, status] :
       {Case{Code::not_found, 503}, Case{Code::conflict, 503}, Case{Code::exhausted, 507}}) {
    world.reach.fail("commit", code);
    const Answer pause = world.ask("POST", at + "/pause", R"({"memory":false})");
    EXPECT_EQ(pause.status, status);
    EXPECT_EQ(pause.headers.value("Should-Retry"), status == 507 ? "false" : "");
    EXPECT_EQ(world.ask("POST", at + "/snapshots").status, status);
    EXPECT_EQ(world.ask("POST", at + "/fork").status, status);
    world.reach.fail("set_egress", code);
    EXPECT_EQ(world.ask("PUT", at + "/network", "{}").status, status);
    world.reach.fail("outfit", code);
    EXPECT_EQ(
        world.ask("POST", "/v2/sandboxes", R"({"templateID":"base","envVars":{"A":"1"}})").status,
        status);
  }
  world.reach.fail("");
  world.client().remove(client::kSecrets, "default", id + "-e2b");
  EXPECT_EQ(world.ask("POST", at + "/fork").status, 503U);
}

TEST(E2bSnapshots, NeedASandboxThatRuns) {
  World world;
  const std::string id = world.create();
  ASSERT_EQ(world.ask("POST", "/sandboxes/" + id + "/pause").status, 204U);
  EXPECT_EQ(world.ask("POST", "/sandboxes/" + id + "/snapshots").status, 409U);
  EXPECT_EQ(world.ask("POST", "/sandboxes/" + id + "/fork").status, 409U);
  EXPECT_EQ(world.ask("POST", "/sandboxes/unknown/snapshots").status, 404U);
  EXPECT_EQ(world.ask("POST", "/sandboxes/unknown/fork").status, 404U);
  EXPECT_EQ(world.ask("POST", "/sandboxes/Un-Known/fork").status, 400U);
}

TEST(E2bSnapshots, NeedSomebodyWhoReachesIn) {
  World world(quick_options(), /*has_reach=*/false);
  world.client().create(client::kSandboxes,
                        json(R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
      "metadata":{"name":"i0","namespace":"default","labels":{"hearth.dev/front":"e2b"}},
      "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"x"}]}}}})"));
  ASSERT_TRUE(eventually([&] { return world.ask("GET", "/sandboxes/i0").status == 200; }));
  EXPECT_EQ(world.ask("POST", "/sandboxes/i0/snapshots").status, 501U);
  EXPECT_EQ(world.ask("POST", "/sandboxes/i0/fork").status, 501U);
  EXPECT_EQ(world.ask("PUT", "/sandboxes/i0/network", "{}").status, 501U);
}

TEST(E2bForks, AreTheSameAndTheirOwn) {
  World world;
  const std::string id = world.create(
      R"({"templateID":"base","metadata":{"a":"b"},"envVars":{"X":"1"},"autoPause":true,
          "network":{"denyOut":["10.0.0.0/8"],"allowPublicTraffic":false}})");
  const Answer forked =
      world.ask("POST", "/sandboxes/" + id + "/fork", R"({"timeout":60,"count":3})");
  ASSERT_EQ(forked.status, 201U) << forked.message();
  ASSERT_EQ(forked.body.as_array().size(), 3U);
  ASSERT_EQ(world.reach.images().size(), 1U);
  const std::string image = world.reach.images().begin()->first;
  const Answer source = world.ask("GET", "/sandboxes/" + id);
  std::set<std::string> tokens{source.text("envdAccessToken")};
  std::vector<std::string> forks;
  for (const Json& each : forked.body.as_array()) {
    ASSERT_TRUE(each.as_object().contains("sandbox")) << model::to_text(each);
    const Json& sandbox = each.at("sandbox");
    forks.emplace_back(model::text_at(sandbox, {"sandboxID"}));
    EXPECT_TRUE(tokens.emplace(model::text_at(sandbox, {"envdAccessToken"})).second);
    EXPECT_FALSE(model::text_at(sandbox, {"trafficAccessToken"}).empty());
    EXPECT_EQ(model::text_at(sandbox, {"templateID"}), "base");
    const Answer detail = world.ask("GET", "/sandboxes/" + forks.back());
    for (const char* field : {"metadata", "network", "lifecycle"})
      EXPECT_EQ(detail.body.at(field), source.body.at(field)) << field;
    EXPECT_EQ(image_of(world.sandbox(forks.back())), image);
    const auto outfits = world.reach.outfits(forks.back());
    ASSERT_EQ(outfits.size(), 1U);
    const auto& variables = outfits[0].environment;
    EXPECT_NE(std::ranges::find(variables, "X=1"), variables.end());
    EXPECT_NE(std::ranges::find(variables, "E2B_SANDBOX_ID=" + forks.back()), variables.end());
    ASSERT_TRUE(world.reach.egress(forks.back()));
    EXPECT_EQ(world.reach.egress(forks.back())->deny, (std::vector<std::string>{"10.0.0.0/8"}));
  }
  EXPECT_EQ(source.text("state"), "running");
  // The image goes with the last of them.
  for (const std::string& each : forks) {
    EXPECT_EQ(world.reach.images().size(), 1U);
    EXPECT_EQ(world.ask("DELETE", "/sandboxes/" + each).status, 204U);
  }
  EXPECT_TRUE(eventually([&] { return world.reach.images().empty(); }));
}

TEST(E2bForks, LiveAsLongAsTheyWereToldTo) {
  World world;
  const std::string id = world.create();
  const Answer forked = world.ask("POST", "/sandboxes/" + id + "/fork");
  ASSERT_EQ(forked.status, 201U);
  const std::string fork(model::text_at(forked.body.at(0), {"sandbox", "sandboxID"}));
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + fork).status, 200U);
  world.clock.advance(std::chrono::seconds(15));
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + fork).status, 404U);
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).status, 200U);
}

TEST(E2bForks, TellWhichOfThemFailed) {
  World world;
  const std::string key =
      world.keys.issue({.team = "blue", .name = "two", .limits = {.sandboxes = 2}, .expires = {}})
          .key;
  const std::string id = world.create(R"({"templateID":"own"})", key);
  const Answer forked = world.ask("POST", "/sandboxes/" + id + "/fork", R"({"count":3})", key);
  ASSERT_EQ(forked.status, 201U);
  int made = 0;
  for (const Json& each : forked.body.as_array()) {
    if (each.as_object().contains("sandbox")) {
      ++made;
      continue;
    }
    EXPECT_EQ(model::number_at(each, {"error", "code"}), 429);
    EXPECT_FALSE(model::text_at(each, {"error", "message"}).empty());
  }
  EXPECT_EQ(made, 1);
}

TEST(E2bForks, LeaveNothingWhenAllFail) {
  World world;
  const std::string id = world.create(R"({"templateID":"base","envVars":{"A":"1"}})");
  world.reach.fail("outfit");
  const Answer forked = world.ask("POST", "/sandboxes/" + id + "/fork", R"({"count":2})");
  ASSERT_EQ(forked.status, 201U);
  for (const Json& each : forked.body.as_array())
    EXPECT_EQ(model::number_at(each, {"error", "code"}), 503) << model::to_text(each);
  EXPECT_TRUE(eventually([&] { return world.reach.images().empty(); }));
  EXPECT_TRUE(
      eventually([&] { return world.ask("GET", "/v2/sandboxes").body.as_array().size() == 1; }));
}

TEST(E2bForks, RefuseNonsense) {
  World world;
  const std::string id = world.create();
  for (const char* body : {R"({"count":0})", R"({"count":101})", R"({"count":"2"})",
                           R"({"timeout":0})", R"({"timeout":100000000})", R"([])", "{"})
    EXPECT_EQ(world.ask("POST", "/sandboxes/" + id + "/fork", body).status, 400U) << body;
  EXPECT_TRUE(world.reach.images().empty());
}

TEST(E2bKeptImages, AreCountedAgainAfterARestart) {
  World world;
  const std::string id = world.create();
  const std::string snapshot =
      world.ask("POST", "/sandboxes/" + id + "/snapshots").text("snapshotID");
  world.restart();
  EXPECT_EQ(world.reach.images().size(), 1U);
  EXPECT_EQ(world.ask("DELETE", "/templates/" + snapshot).status, 204U);
  EXPECT_TRUE(eventually([&] { return world.reach.images().empty(); }));
}

TEST(E2bKeptImages, StayFromTheMomentTheyAreNamed) {
  World world;
  const std::string id = world.create();
  std::string first;
  for (int i = 0; i < 50; ++i) {
    const Answer made = world.ask("POST", "/sandboxes/" + id + "/snapshots");
    ASSERT_EQ(made.status, 201U);
    if (first.empty()) first = made.text("snapshotID");
  }
  // They are removed in their order: when this one has gone, all that were to go have.
  EXPECT_EQ(world.ask("DELETE", "/templates/" + first).status, 204U);
  EXPECT_TRUE(eventually([&] { return world.reach.images().size() <= 49; }));
  const std::string last = world.ask("POST", "/sandboxes/" + id + "/snapshots").text("snapshotID");
  EXPECT_EQ(world.ask("DELETE", "/templates/" + last).status, 204U);
  EXPECT_TRUE(eventually([&] { return world.reach.images().size() <= 49; }));
  EXPECT_EQ(world.reach.images().size(), 49U);
}

TEST(E2bKeptImages, OfOthersAreNotRemoved) {
  World world;
  const std::string id = world.create();
  ASSERT_EQ(image_of(world.sandbox(id)), "host");
  world.reach.commit(world.client().get(client::kPods, "default", id), "host");
  const std::string other = world.create();
  EXPECT_EQ(world.ask("DELETE", "/sandboxes/" + id).status, 204U);
  // When this one's has gone, the other would have as well.
  const std::string snapshot =
      world.ask("POST", "/sandboxes/" + other + "/snapshots").text("snapshotID");
  EXPECT_EQ(world.reach.images().size(), 2U);
  EXPECT_EQ(world.ask("DELETE", "/templates/" + snapshot).status, 204U);
  EXPECT_TRUE(eventually([&] { return world.reach.images().size() == 1; }));
  EXPECT_TRUE(world.reach.images().contains("host"));
}

}  // namespace
}  // namespace hearth::e2b
