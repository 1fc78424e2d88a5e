#include "e2b/pause.h"

#include "e2b/life.h"
#include "e2b/outfitting.h"
#include "e2b/state.h"
#include "e2b/words.h"
#include "e2b/world_testing.h"

namespace hearth::e2b {
namespace {

using std::chrono::seconds;

class E2bPauses : public testing::Test {
 protected:
  unsigned post(const std::string& id, const std::string& verb, std::string_view body = {}) {
    last = world.ask("POST", "/sandboxes/" + id + "/" + verb, body);
    return last.status;
  }
  std::string state(const std::string& id) {
    return world.ask("GET", "/sandboxes/" + id).text("state");
  }

  World world;
  Answer last;
};

TEST_F(E2bPauses, KeepMemory) {
  const std::string id = world.create(R"({"templateID":"base","timeout":60,"envVars":{"A":"1"}})");
  ASSERT_EQ(post(id, "pause"), 204U) << last.message();
  EXPECT_EQ(state(id), "paused");
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).text("pauseMode"), "full");
  const Json paused = world.sandbox(id);
  EXPECT_EQ(model::annotation_of(paused, model::kPauseAnnotation), "memory");
  EXPECT_EQ(model::find(paused, {"spec", "shutdownTime"}), nullptr);
  EXPECT_EQ(time_text(*end_at(paused)), time_text(world.clock.now()));
  EXPECT_EQ(post(id, "pause"), 409U);
  EXPECT_EQ(post(id, "timeout", R"({"timeout":1})"), 404U);

  world.clock.advance(std::chrono::hours(48));
  EXPECT_EQ(state(id), "paused") << "it has no end";
  ASSERT_EQ(post(id, "connect", R"({"timeout":120})"), 201U) << last.message();
  EXPECT_EQ(last.text("sandboxID"), id);
  EXPECT_EQ(last.text("envdAccessToken"), world.tokens.envd_token({"default", id}));
  EXPECT_EQ(state(id), "running");
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).text("pauseMode"), "");
  const Json running = world.sandbox(id);
  EXPECT_NE(model::find(running, {"spec", "shutdownTime"}), nullptr);
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).text("endAt"),
            time_text(world.clock.now() + seconds(120)));
  EXPECT_EQ(world.reach.outfits(id).size(), 1U) << "it is still the same container";
}

TEST_F(E2bPauses, AreListed) {
  const std::string id = world.create();
  ASSERT_EQ(post(id, "pause", R"({"memory":true})"), 204U);
  EXPECT_EQ(world.ask("GET", "/v2/sandboxes?state=paused").body.as_array().size(), 1U);
  EXPECT_EQ(world.ask("GET", "/v2/sandboxes?state=running").body.as_array().size(), 0U);
  EXPECT_EQ(world.ask("GET", "/sandboxes").body.as_array().size(), 0U);
}

TEST_F(E2bPauses, ConnectOnlyExtends) {
  const std::string id = world.create(R"({"templateID":"base","timeout":60})");
  const auto end = [&] { return world.ask("GET", "/sandboxes/" + id).text("endAt"); };
  EXPECT_EQ(post(id, "connect", R"({"timeout":10})"), 200U);
  EXPECT_EQ(end(), time_text(world.clock.now() + seconds(60)));
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes/" + id + "/connect").status, 200U);
  EXPECT_EQ(end(), time_text(world.clock.now() + seconds(300)));
  EXPECT_EQ(post(id, "connect"), 400U) << "the first generation always says for how long";
  EXPECT_EQ(post(id, "connect", R"({"timeout":0})"), 200U);
  EXPECT_EQ(end(), time_text(world.clock.now() + seconds(300)));
  EXPECT_EQ(post(id, "connect", R"({"timeout":-1})"), 400U);
  EXPECT_EQ(post(id, "connect", R"({"timeout":86401})"), 400U);
  EXPECT_EQ(post("i0", "connect", R"({"timeout":10})"), 404U);
}

TEST_F(E2bPauses, ResumeTheOldWay) {
  const std::string id = world.create();
  EXPECT_EQ(post(id, "resume"), 409U);
  ASSERT_EQ(post(id, "pause"), 204U);
  EXPECT_EQ(post(id, "resume", R"({"timeout":0})"), 400U);
  EXPECT_EQ(post(id, "connect", R"({"timeout":0})"), 400U);
  ASSERT_EQ(post(id, "resume", R"({"autoPause":false})"), 201U);
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).text("endAt"),
            time_text(world.clock.now() + seconds(15)));
  EXPECT_EQ(post("i0", "resume"), 404U);
  EXPECT_EQ(post("i0", "pause"), 404U);
}

TEST_F(E2bPauses, KeepFilesAlone) {
  const std::string id = world.create(R"({"templateID":"base","envVars":{"A":"1"}})");
  ASSERT_EQ(post(id, "pause", R"({"memory":false})"), 204U) << last.message();
  EXPECT_EQ(state(id), "paused");
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).text("pauseMode"), "filesystem");
  ASSERT_EQ(world.reach.images().size(), 1U);
  const std::string image = world.reach.images().begin()->first;
  const Json paused = world.sandbox(id);
  EXPECT_EQ(model::text_at(paused, {"spec", "operatingMode"}), "Suspended");
  const Json& container = paused.at_pointer("/spec/podTemplate/spec/containers/0");
  EXPECT_EQ(model::text_at(container, {"image"}), image);
  EXPECT_EQ(model::text_at(container, {"imagePullPolicy"}), "Never");
  EXPECT_EQ(model::text_at(container, {"name"}), "main");
  EXPECT_FALSE(world.client().find(client::kPods, "default", id));

  ASSERT_EQ(world.ask("POST", "/v2/sandboxes/" + id + "/connect").status, 201U);
  EXPECT_EQ(state(id), "running");
  const auto outfits = world.reach.outfits(id);
  ASSERT_EQ(outfits.size(), 2U) << "another pod, and the same belongings";
  EXPECT_EQ(outfits[0].environment, outfits[1].environment);
  EXPECT_EQ(outfits[0].token, outfits[1].token);

  ASSERT_EQ(post(id, "pause", R"({"memory":false})"), 204U);
  ASSERT_EQ(world.reach.images().size(), 1U) << "the image of the first pause has gone";
  EXPECT_NE(world.reach.images().begin()->first, image);
  EXPECT_EQ(world.ask("DELETE", "/sandboxes/" + id).status, 204U);
  EXPECT_TRUE(eventually([&] { return world.reach.images().empty(); }));
}

TEST_F(E2bPauses, ImagesThatNothingNamesAreSweptByTheNextLife) {
  const std::string id = world.create();
  ASSERT_EQ(post(id, "pause", R"({"memory":false})"), 204U) << last.message();
  const std::string paused = world.reach.images().begin()->first;
  const std::string other = world.create();
  const Answer made = world.ask("POST", "/sandboxes/" + other + "/snapshots", "{}");
  ASSERT_EQ(made.status, 201U) << made.message();
  const auto kept = world.reach.images();
  ASSERT_EQ(kept.size(), 2U);
  world.reach.add_image("hearth.dev/e2b/paused/gone:1");
  world.reach.add_image("hearth.dev/e2b/kept/gone");
  world.reach.add_image("docker.io/library/python:3");

  world.restart();
  // Made by this life: whoever made it may not have said so yet.
  world.reach.add_image("hearth.dev/e2b/paused/new:1");
  world.api->sweep_images();

  auto left = kept;
  left["docker.io/library/python:3"] = left["hearth.dev/e2b/paused/new:1"] = "";
  EXPECT_TRUE(eventually([&] { return world.reach.images() == left; }));
  EXPECT_EQ(state(id), "paused");
}

TEST_F(E2bPauses, MemoryCanBeLetGoWhenItGoesOn) {
  const std::string id = world.create(R"({"templateID":"base","envVars":{"A":"1"}})");
  ASSERT_EQ(post(id, "pause"), 204U);
  ASSERT_EQ(post(id, "connect", R"({"timeout":60,"memory":false})"), 201U) << last.message();
  EXPECT_EQ(state(id), "running");
  EXPECT_EQ(world.reach.images().size(), 1U);
  EXPECT_EQ(world.reach.outfits(id).size(), 2U);
  EXPECT_EQ(post(id, "connect", R"({"timeout":60,"memory":false})"), 200U) << "it runs: no matter";
  EXPECT_EQ(world.reach.outfits(id).size(), 2U);
}

TEST_F(E2bPauses, APauseThatFailsIsTakenBack) {
  const std::string id = world.create(R"({"templateID":"base","timeout":60})");
  world.reach.fail("commit");
  EXPECT_EQ(post(id, "pause", R"({"memory":false})"), 503U);
  EXPECT_EQ(state(id), "running");
  EXPECT_NE(model::find(world.sandbox(id), {"spec", "shutdownTime"}), nullptr);
  EXPECT_TRUE(world.reach.images().empty());
}

TEST_F(E2bPauses, AtTheEndOfItsTime) {
  const std::string id = world.create(R"({"templateID":"base","timeout":60,"autoPause":true})");
  EXPECT_EQ(model::find(world.sandbox(id), {"spec", "shutdownTime"}), nullptr);
  EXPECT_EQ(post(id, "timeout", R"({"timeout":0})"), 204U);
  EXPECT_TRUE(eventually([&] { return state(id) == "paused"; }));
  ASSERT_EQ(post(id, "connect", R"({"timeout":60})"), 201U);
  EXPECT_EQ(model::find(world.sandbox(id), {"spec", "shutdownTime"}), nullptr);
}

TEST_F(E2bPauses, AtTheEndOfItsTimeWithoutMemory) {
  const std::string id = world.create(
      R"({"templateID":"base","timeout":60,"autoPause":true,"autoPauseMemory":false})");
  EXPECT_EQ(post(id, "timeout", R"({"timeout":0})"), 204U);
  EXPECT_TRUE(eventually([&] { return state(id) == "paused"; }));
  EXPECT_EQ(world.reach.images().size(), 1U);
}

// By another engine, whose writes this one's cache may show late.
TEST_F(E2bPauses, MoreTimeThatSomebodyGaveMeanwhileCounts) {
  const std::string id = world.create(
      R"({"templateID":"base","timeout":60,"autoPause":true,"autoPauseMemory":false})");
  const std::string later = time_text(world.clock.now() + seconds(1000));
  world.reach.on_commit = [&] {
    world.client().patch(
        client::kSandboxes, "default", id, client::PatchKind::merge,
        json(fmt::format(R"({{"metadata":{{"annotations":{{"hearth.dev/end-at":"{}"}}}}}})",
                         later)));
  };
  ASSERT_EQ(post(id, "timeout", R"({"timeout":0})"), 204U);
  ASSERT_TRUE(eventually([&] { return world.reach.removals() > 0; }));
  // Somebody else has written it: the API hears of that in its own time.
  EXPECT_TRUE(
      eventually([&] { return world.ask("GET", "/sandboxes/" + id).text("endAt") == later; }));
  EXPECT_EQ(state(id), "running");
}

TEST_F(E2bPauses, WhatHasChangedIsNeitherPausedNorKilled) {
  const std::string id = world.create(R"({"templateID":"base","timeout":60})");
  reconcile::Manager manager(world.client());
  Core core({.client = world.client(),
             .manager = manager,
             .reach = &world.reach,
             .keys = world.keys,
             .tokens = world.tokens,
             .clock = world.clock,
             .metrics = world.metrics},
            quick_options());
  core.listen();
  manager.start_caches(seconds(30));
  const Json before = world.sandbox(id);
  EXPECT_EQ(post(id, "timeout", R"({"timeout":1000})"), 204U);
  const std::string_view version = model::resource_version_of(before);
  EXPECT_THROW(kill(core, before, version), model::StatusError);
  EXPECT_THROW(pause(core, before, Keeps::memory, version), model::StatusError);
  EXPECT_EQ(state(id), "running");
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).text("endAt"),
            time_text(world.clock.now() + seconds(1000)));
  manager.stop();
}

TEST(E2bKeepers, WhereThereIsNoPausingTheEndIsTheEnd) {
  World world(quick_options(), /*has_reach=*/false);
  EXPECT_EQ(world
                .ask("POST", "/v2/sandboxes",
                     R"({"templateID":"base","autoPause":true,"autoPauseMemory":false})")
                .status,
            501U);
  Json made = json(R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
      "metadata":{"name":"i0","namespace":"default","labels":{"hearth.dev/front":"e2b"},
        "annotations":{"hearth.dev/on-timeout":"pause","hearth.dev/on-timeout-pause":"files"}},
      "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"x"}]}}}})");
  made.at_pointer("/metadata/annotations").as_object()[model::kEndAnnotation] =
      time_text(world.clock.now());
  world.client().create(client::kSandboxes, made);
  EXPECT_TRUE(eventually([&] { return !world.exists("i0"); }));
}

TEST_F(E2bPauses, GoingOnTakesNothingOfTheirTime) {
  const std::string id = world.create();
  ASSERT_EQ(post(id, "pause", R"({"memory":false})"), 204U) << last.message();
  ASSERT_TRUE(eventually([&] { return !world.client().find(client::kPods, "default", id); }));
  world.node.stop_working();
  Answer answer;
  std::jthread asking(
      [&] { answer = world.ask("POST", "/sandboxes/" + id + "/connect", R"({"timeout":5})"); });
  ASSERT_TRUE(
      eventually([&] { return world.client().find(client::kPods, "default", id).has_value(); }));
  world.clock.advance(seconds(10));
  world.node.restart_container("default", id);
  asking.join();
  ASSERT_EQ(answer.status, 201U) << answer.message();
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).text("endAt"),
            time_text(world.clock.now() + seconds(5)));
}

TEST_F(E2bPauses, OneThatGoesOnCountsOnce) {
  const std::string two =
      world.keys.issue({.team = "default", .name = "k", .limits = {.sandboxes = 2}, .expires = {}})
          .key;
  const std::string id = world.create(R"({"templateID":"base"})", two);
  ASSERT_EQ(post(id, "pause", R"({"memory":false})"), 204U) << last.message();
  ASSERT_TRUE(eventually([&] { return !world.client().find(client::kPods, "default", id); }));
  world.node.stop_working();
  Answer answer;
  std::jthread asking([&] {
    answer = world.ask("POST", "/sandboxes/" + id + "/connect", R"({"timeout":5})", two);
  });
  ASSERT_TRUE(eventually([&] {
    return world.client().find(client::kPods, "default", id).has_value() && state(id) == "running";
  }));
  world.node.work_again();
  world.create(R"({"templateID":"base"})", two);
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", R"({"templateID":"base"})", two).status, 429U);
  world.node.restart_container("default", id);
  asking.join();
  EXPECT_EQ(answer.status, 201U) << answer.message();
}

TEST_F(E2bPauses, CountNoMoreAmongThoseThatRun) {
  const std::string key =
      world.keys.issue({.team = "blue", .name = "k", .limits = {.sandboxes = 1}, .expires = {}})
          .key;
  const std::string id = world.create(R"({"templateID":"own"})", key);
  ASSERT_EQ(world.ask("POST", "/sandboxes/" + id + "/pause", "", key).status, 204U);
  const std::string other = world.create(R"({"templateID":"own"})", key);
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes/" + id + "/connect", "", key).status, 429U);
  EXPECT_EQ(world.ask("DELETE", "/sandboxes/" + other, "", key).status, 204U);
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes/" + id + "/connect", "", key).status, 201U);
}

TEST_F(E2bPauses, WakeWhenSomebodyKnocks) {
  const std::string id = world.create(
      R"({"templateID":"base","timeout":77,"autoPause":true,"autoResume":{"enabled":true}})");
  const model::Key key{"default", id};
  world.api->wake(key);  // it runs: nothing happens
  ASSERT_EQ(post(id, "pause"), 204U);
  {
    std::vector<std::jthread> knocks;
    for (int i = 0; i < 4; ++i) knocks.emplace_back([&] { world.api->wake(key); });
  }
  EXPECT_EQ(state(id), "running");
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).text("endAt"),
            time_text(world.clock.now() + seconds(77)));
  const std::string sleeper = world.create();
  ASSERT_EQ(post(sleeper, "pause"), 204U);
  const auto code_of = [&](const model::Key& which) {
    try {
      world.api->wake(which);
    } catch (const Error& error) {
      return error.code();
    }
    return Code::internal;
  };
  EXPECT_EQ(code_of({"default", sleeper}), Code::forbidden);
  EXPECT_EQ(code_of({"default", "i0"}), Code::not_found);
  ASSERT_EQ(post(id, "pause", R"({"memory":false})"), 204U);
  EXPECT_EQ(code_of(key), Code::not_found) << "it would start anew";
  EXPECT_EQ(state(id), "paused");
  EXPECT_EQ(post(id, "connect", R"({"timeout":60})"), 201U) << last.message();
}

// Of its files and processes nothing is left: it is no sandbox that anybody had.
TEST_F(E2bPauses, AContainerThatBeganAnewIsTheEnd) {
  const std::string cold = world.create();
  const std::string warm_member = world.add_member();
  const std::string warm = world.create();
  ASSERT_EQ(warm, warm_member);
  const std::string paused = world.create();
  ASSERT_EQ(post(paused, "pause"), 204U);
  const std::string resumed = world.create();
  ASSERT_EQ(post(resumed, "pause", R"({"memory":false})"), 204U);
  ASSERT_EQ(post(resumed, "connect", R"({"timeout":60})"), 201U) << last.message();
  const std::string other = world.create();
  for (const std::string& id : {cold, warm, paused, resumed}) {
    EXPECT_EQ(state(id), id == paused ? "paused" : "running");
    world.node.restart_container("default", id);
    if (id == paused) {
      // Whoever is faster than its keeper.
      EXPECT_EQ(post(id, "connect", R"({"timeout":60})"), 404U) << last.message();
    }
    EXPECT_TRUE(eventually([&] { return !world.exists(id); })) << id;
  }
  EXPECT_EQ(state(other), "running");
}

TEST_F(E2bPauses, FilesThatCannotBeKeptAloneAreKeptWithItsMemory) {
  const std::string id = world.create(
      R"({"templateID":"base","timeout":60,"autoPause":true,"autoPauseMemory":false})");
  world.reach.fail("commit", Code::invalid);
  EXPECT_EQ(post(id, "timeout", R"({"timeout":0})"), 204U);
  EXPECT_TRUE(eventually([&] { return state(id) == "paused"; }));
  EXPECT_EQ(model::annotation_of(world.sandbox(id), model::kPauseAnnotation), "memory");
}

TEST_F(E2bPauses, AnotherEngineKnowsItAll) {
  const std::string id = world.create(R"({"templateID":"base","envVars":{"A":"1"}})");
  const std::string paused = world.create(R"({"templateID":"base","metadata":{"x":"y"}})");
  ASSERT_EQ(post(paused, "pause", R"({"memory":false})"), 204U);
  world.restart();
  EXPECT_EQ(state(id), "running");
  EXPECT_EQ(state(paused), "paused");
  ASSERT_TRUE(eventually([&] { return world.reach.outfits(id).size() == 2; }))
      << "it cannot know that it was given already, and gives it again";
  ASSERT_EQ(post(paused, "connect", R"({"timeout":60})"), 201U) << last.message();
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + paused).body.at("metadata").at("x").as_string(), "y");
}

TEST_F(E2bPauses, WhatFailsToGoOnStaysPaused) {
  const std::string id = world.create();
  ASSERT_EQ(post(id, "pause", R"({"memory":false})"), 204U) << last.message();
  // Only now: what has to succeed may take its time.
  Options options = quick_options();
  options.start_patience = std::chrono::milliseconds(50);
  world.restart(options);
  world.node.stop_working();
  EXPECT_EQ(post(id, "connect", R"({"timeout":60})"), 504U);
  EXPECT_TRUE(eventually([&] { return state(id) == "paused"; }));
  EXPECT_EQ(model::find(world.sandbox(id), {"spec", "shutdownTime"}), nullptr);
  EXPECT_EQ(model::text_at(world.sandbox(id), {"spec", "operatingMode"}), "Suspended");
}

}  // namespace
}  // namespace hearth::e2b
