#include <algorithm>
#include <future>

#include "base/base64.h"
#include "base/time_text.h"
#include "e2b/world_testing.h"
#include "model/names.h"
#include "net/server.h"

namespace hearth::e2b {
namespace {

bool has_variable(const pool::Outfit& outfit, std::string_view variable) {
  return std::ranges::find(outfit.environment, variable) != outfit.environment.end();
}

TEST(E2bCreates, AWarmOneIsTakenWithItsOutfit) {
  World world;
  const std::string member = world.add_member();
  const Answer answer = world.ask("POST", "/v2/sandboxes", R"({"templateID":"base","timeout":60,
      "metadata":{"user":"ann","odd key":"x y"},"envVars":{"A":"1"}})");
  ASSERT_EQ(answer.status, 201U) << answer.message();
  EXPECT_EQ(answer.text("sandboxID"), member);
  EXPECT_EQ(answer.text("templateID"), "base");
  EXPECT_EQ(answer.text("envdVersion"), "0.6.13");
  EXPECT_EQ(answer.text("envdAccessToken"), world.tokens.envd_token({"default", member}));
  EXPECT_TRUE(answer.body.at("domain").is_null());
  EXPECT_FALSE(answer.body.as_object().contains("trafficAccessToken"));
  EXPECT_FALSE(answer.text("clientID").empty());

  const auto outfits = world.reach.outfits(member);
  ASSERT_EQ(outfits.size(), 1U);
  EXPECT_EQ(outfits[0].token, world.tokens.envd_token({"default", member}));
  EXPECT_TRUE(has_variable(outfits[0], "A=1"));
  EXPECT_TRUE(has_variable(outfits[0], "E2B_SANDBOX=true"));
  EXPECT_TRUE(has_variable(outfits[0], "E2B_SANDBOX_ID=" + member));
  EXPECT_TRUE(has_variable(outfits[0], "E2B_TEMPLATE_ID=base"));
  EXPECT_EQ(world.chosen(), std::vector{member});
}

// Nothing of a create is checked again but how much it says, with what is said of the member.
TEST(E2bCreates, MoreThanAnObjectMaySayIsRefusedAndTakesNobody) {
  World world;
  const std::string member = world.add_member();
  const std::string long_word(model::kMostAnnotationBytes - 20'000, 'x');
  world.client().patch(
      client::kSandboxes, "default", member, client::PatchKind::merge,
      json(fmt::format(R"({{"metadata":{{"annotations":{{"word":"{}"}}}}}})", long_word)));
  const auto ask = [&](std::size_t length) {
    return world.ask("POST", "/v2/sandboxes",
                     fmt::format(R"({{"templateID":"base","metadata":{{"a":"{}"}}}})",
                                 std::string(length, 'y')));
  };
  const Answer refused = ask(30'000);
  EXPECT_EQ(refused.status, 400U);
  EXPECT_NE(refused.message().find("metadata.annotations: Too long"), std::string::npos)
      << refused.message();
  EXPECT_EQ(ask(1'000).text("sandboxID"), member);
}

TEST(E2bCreates, OneThatWearsEverythingIsNotReachedInto) {
  World world;
  const std::string warm = world.add_member();
  ASSERT_EQ(world.create(), warm);
  EXPECT_TRUE(world.reach.outfits(warm).empty());
  const std::string cold = world.create();
  EXPECT_TRUE(world.reach.outfits(cold).empty());
  const Json pod = world.client().get(client::kPods, "default", cold);
  EXPECT_EQ(model::annotation_of(pod, model::kDressAnnotation), "base");
}

TEST(E2bCreates, AnOpenOneGoesWithoutItsToken) {
  World world;
  const std::string warm = world.add_member();
  const Answer answer = world.ask("POST", "/sandboxes", R"({"templateID":"base","secure":false})");
  ASSERT_EQ(answer.text("sandboxID"), warm) << answer.message();
  const auto outfits = world.reach.outfits(warm);
  ASSERT_EQ(outfits.size(), 1U);
  EXPECT_TRUE(outfits[0].drops_token);
  EXPECT_EQ(outfits[0].token, "");
  const Answer cold = world.ask("POST", "/sandboxes", R"({"templateID":"base","secure":false})");
  const Json pod = world.client().get(client::kPods, "default", cold.text("sandboxID"));
  EXPECT_EQ(model::annotation_of(pod, model::kDressAnnotation), "");
}

TEST(E2bCreates, WhoAsksNextKnowsOfIt) {
  World world;
  for (int i = 0; i < 8; ++i) {
    const std::string id = world.add_member();
    ASSERT_EQ(world.create(), id);
    EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).status, 200U);
    EXPECT_EQ(world.ask("GET", "/v2/sandboxes").body.as_array().size(), i + 1U);
  }
}

TEST(E2bCreates, AWarmOneIsNobodysPoolsAnyMore) {
  World world;
  const std::string member = world.add_member();
  ASSERT_EQ(world.create(R"({"templateID":"base","timeout":60,"metadata":{"user":"ann",
      "odd key":"x y"}})"),
            member);
  const Json sandbox = world.sandbox(member);
  EXPECT_FALSE(model::controller_of(sandbox));
  EXPECT_FALSE(pool::is_adoptable(sandbox));
  EXPECT_EQ(model::label_of(sandbox, model::kPoolLabel), "");
  EXPECT_EQ(model::label_of(sandbox, model::kFrontLabel), "e2b");
  EXPECT_EQ(model::label_of(sandbox, model::kTemplateLabel), "base");
  EXPECT_EQ(model::label_of(sandbox, "metadata.hearth.dev/user"), "ann");
  EXPECT_EQ(model::label_of(sandbox, "metadata.hearth.dev/odd key"), "");
  EXPECT_TRUE(model::is_same(json(model::annotation_of(sandbox, model::kMetadataAnnotation)),
                             json(R"({"user":"ann","odd key":"x y"})")));
  EXPECT_EQ(model::annotation_of(sandbox, model::kAccessAnnotation), "token");
  EXPECT_EQ(model::annotation_of(sandbox, model::kOnTimeoutAnnotation), "kill");
  const Time end = world.clock.now() + std::chrono::seconds(60);
  const auto said = parse_rfc3339(model::text_at(sandbox, {"spec", "shutdownTime"}));
  ASSERT_TRUE(said);
  EXPECT_GE(*said, std::chrono::floor<std::chrono::microseconds>(end));
  EXPECT_LT(*said, end + std::chrono::seconds(1));
  EXPECT_EQ(model::text_at(sandbox, {"spec", "shutdownPolicy"}), "Delete");
  const auto* pod_labels = model::object_at(sandbox, {"spec", "podTemplate", "metadata", "labels"});
  ASSERT_NE(pod_labels, nullptr);
  EXPECT_FALSE(pod_labels->contains(model::kPoolLabel));
  EXPECT_EQ(world.allocator->stock({"default", "base"}).ready, 0U);
}

TEST(E2bCreates, WithoutAWarmOneItStartsCold) {
  World world;
  const std::string id = world.create(R"({"templateID":"base","envVars":{"A":"1"}})");
  EXPECT_EQ(id.size(), 21U);
  const Json sandbox = world.sandbox(id);
  EXPECT_TRUE(model::is_condition_true(sandbox, "Ready"));
  EXPECT_EQ(model::label_of(sandbox, model::kLaunchTypeLabel), "cold");
  EXPECT_EQ(world.reach.outfits(id).size(), 1U);
  const Json secret = world.client().get(client::kSecrets, "default", id + "-e2b");
  EXPECT_TRUE(model::is_controlled_by(secret, model::uid_of(sandbox)));
  EXPECT_EQ(base64_decode(model::text_at(secret, {"data", "environment"})), R"({"A":"1"})");
  const std::string numbers = world.metrics.render();
  EXPECT_NE(numbers.find(R"(hearth_e2b_create_seconds_count{path="cold"} 1)"), std::string::npos);
  EXPECT_NE(numbers.find(R"(route="POST /v2/sandboxes",code="201"} 1)"), std::string::npos);
}

TEST(E2bCreates, MembersWithOtherNamesAreNotTaken) {
  World world;
  world.add_member("base", "default", "base-x7k2p");
  EXPECT_EQ(world.create().size(), 21U);
  EXPECT_TRUE(world.sandbox("base-x7k2p").at_pointer("/metadata/ownerReferences").is_array());
}

TEST(E2bCreates, AnOpenOneHasNoToken) {
  World world;
  const Answer answer = world.ask("POST", "/sandboxes", R"({"templateID":"base","secure":false,
      "timeout":20,"allow_internet_access":true,"metadata":{},"envVars":{}})");
  ASSERT_EQ(answer.status, 201U);
  EXPECT_FALSE(answer.body.as_object().contains("envdAccessToken"));
  const std::string id = answer.text("sandboxID");
  EXPECT_EQ(world.reach.outfits(id).front().token, "");
  EXPECT_EQ(model::annotation_of(world.sandbox(id), model::kAccessAnnotation), "open");
  const Answer secure =
      world.ask("POST", "/sandboxes", R"({"templateID":"base","secure":true,"timeout":20})");
  EXPECT_FALSE(secure.text("envdAccessToken").empty());
}

TEST(E2bCreates, WhomItMayTalkTo) {
  World world;
  const Answer answer = world.ask("POST", "/v2/sandboxes", R"({"templateID":"base",
      "allow_internet_access":false,"network":{"allowOut":["9.9.9.9"],"allowPublicTraffic":false,
        "maskRequestHost":"h:${PORT}","httpsPorts":[8443,9443]}})");
  ASSERT_EQ(answer.status, 201U) << answer.message();
  const std::string id = answer.text("sandboxID");
  EXPECT_EQ(answer.text("trafficAccessToken"), world.tokens.traffic_token({"default", id}));
  const auto egress = world.reach.egress(id);
  ASSERT_TRUE(egress);
  EXPECT_EQ(egress->allow, (std::vector<std::string>{"9.9.9.9"}));
  EXPECT_EQ(egress->deny, (std::vector<std::string>{"0.0.0.0/0"}));
  const Json sandbox = world.sandbox(id);
  EXPECT_EQ(model::annotation_of(sandbox, model::kTrafficAnnotation), "token");
  EXPECT_EQ(model::annotation_of(sandbox, model::kMaskHostAnnotation), "h:${PORT}");
  EXPECT_EQ(model::annotation_of(sandbox, model::kHttpsPortsAnnotation), "8443,9443");
  const Answer detail = world.ask("GET", "/sandboxes/" + id);
  EXPECT_EQ(detail.body.at("allowInternetAccess").as_bool(), false);
  EXPECT_EQ(model::to_text(detail.body.at("network")),
            R"({"allowOut":["9.9.9.9"],"denyOut":["0.0.0.0/0"],"allowPublicTraffic":false,)"
            R"("maskRequestHost":"h:${PORT}","httpsPorts":[8443,9443]})");
}

TEST(E2bCreates, WhatWasSaidOfItsPortsIsShown) {
  World world;
  const auto shown = [&](const std::string& network) {
    const std::string id = world.create(R"({"templateID":"base","network":)" + network + "}");
    const JsonObject detail = world.ask("GET", "/sandboxes/" + id).body.as_object();
    const Json* said = detail.if_contains("network");
    return said == nullptr ? "nothing" : model::to_text(*said);
  };
  EXPECT_EQ(shown(R"({"allowPublicTraffic":true})"), R"({"allowPublicTraffic":true})");
  EXPECT_EQ(shown(R"({"allowPublicTraffic":false})"), R"({"allowPublicTraffic":false})");
  EXPECT_EQ(shown("{}"), "nothing");
}

TEST(E2bCreates, TheTemplateSaysWhoGetsInAtLeast) {
  World world;
  world.add_template("default", "guarded", "{}", R"({"hearth.dev/access":"team-key",
      "hearth.dev/traffic":"token","hearth.dev/mask-request-host":"inner",
      "hearth.dev/https-ports":"8443"})");
  world.add_pool("default", "guarded");
  world.add_template("default", "secured", "{}", R"({"hearth.dev/access":"token"})");
  world.add_template("default", "wide", "{}", R"({"hearth.dev/access":"open"})");
  const auto rules = [&](const std::string& body) {
    const Answer answer = world.ask("POST", "/sandboxes", "{" + body + "}");
    EXPECT_EQ(answer.status, 201U) << answer.message();
    const Json made = world.sandbox(answer.text("sandboxID"));
    std::vector<std::string> said;
    for (const std::string_view key : {model::kAccessAnnotation, model::kTrafficAnnotation,
                                       model::kMaskHostAnnotation, model::kHttpsPortsAnnotation})
      said.emplace_back(model::annotation_of(made, key));
    said.emplace_back(answer.text("envdAccessToken").empty() ? "" : "token");
    return said;
  };
  using Words = std::vector<std::string>;
  ASSERT_TRUE(eventually(
      [&] { return world.ask("POST", "/sandboxes", R"({"templateID":"wide"})").status == 201; }));
  const std::string guarded = R"("templateID":"guarded","secure":true)";
  const Words all{"team-key", "token", "inner", "8443", ""};
  EXPECT_EQ(rules(guarded), all) << "cold";
  world.add_member("guarded");  // and older than what the template says
  EXPECT_EQ(rules(guarded), all) << "warm";
  EXPECT_EQ(rules(guarded + R"(,"network":{"maskRequestHost":"mine","httpsPorts":[9443]})"),
            (Words{"team-key", "token", "mine", "9443", ""}));
  EXPECT_EQ(rules(guarded + R"(,"network":{"allowPublicTraffic":true})"), all);
  EXPECT_EQ(rules(R"("templateID":"secured","secure":false)"),
            (Words{"token", "", "", "", "token"}));
  EXPECT_EQ(rules(R"("templateID":"wide","secure":true)"), (Words{"token", "", "", "", "token"}));
  EXPECT_EQ(rules(R"("templateID":"wide")"), (Words{"open", "", "", "", ""}));
}

TEST(E2bCreates, TemplatesAreTheTeamsOwnOrPublic) {
  World world;
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", R"({"templateID":"base"})", world.blue).status,
            201U);
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", R"({"templateID":"own"})", world.blue).status, 201U);
  EXPECT_EQ(
      world.ask("POST", "/v2/sandboxes", R"({"templateID":"blue/own:default"})", world.blue).status,
      201U);
  EXPECT_EQ(
      world.ask("POST", "/v2/sandboxes", R"({"templateID":"default/base"})", world.blue).status,
      201U);
  for (const char* foreign : {"private", "default/private", "nothing", "base:v2", "blue/base"}) {
    const Answer answer = world.ask(
        "POST", "/v2/sandboxes", R"({"templateID":")" + std::string(foreign) + "\"}", world.blue);
    EXPECT_EQ(answer.status, 404U) << foreign;
    EXPECT_EQ(answer.message(), "template '" + std::string(foreign) + "' not found");
  }
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", R"({"templateID":"a b"})").status, 400U);
}

TEST(E2bCreates, NobodyPutsHimselfInThePlaceOfAPublicTemplate) {
  World world;
  tenants::create_team(world.client(), "aaa", {});
  world.add_template("aaa", "shared", R"({"hearth.dev/public":"true"})");
  ASSERT_TRUE(eventually([&] {
    return world.ask("POST", "/v2/sandboxes", R"({"templateID":"aaa/shared"})").status == 201;
  }));
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", R"({"templateID":"shared"})").status, 404U);
}

TEST(E2bCreates, TemplatesHaveMoreNames) {
  World world;
  world.add_template("default", "snap-1", "{}", R"({"hearth.dev/template-names":"my_alias:v1"})");
  ASSERT_TRUE(eventually([&] {
    return world.ask("POST", "/v2/sandboxes", R"({"templateID":"my_alias:v1"})").status == 201;
  }));
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", R"({"templateID":"my_alias"})").status, 404U);
}

TEST(E2bCreates, KeysAreAskedFor) {
  World world;
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", "{}", "").status, 401U);
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", "{}", "e2b_" + std::string(40, '0')).status, 401U);
  EXPECT_EQ(world.ask("GET", "/health", "", "").status, 204U);
  EXPECT_EQ(world.ask("GET", "/nowhere").status, 404U);
  EXPECT_EQ(world.ask("PUT", "/sandboxes").status, 405U);
}

TEST(E2bCreates, LimitsAreKept) {
  World world;
  const auto key = [&](const tenants::LimitChanges& limits) {
    return world.keys.issue({.team = "blue", .name = "k", .limits = limits, .expires = {}}).key;
  };
  const std::string lifetime = key({.lifetime_seconds = 100});
  const Answer late =
      world.ask("POST", "/v2/sandboxes", R"({"templateID":"own","timeout":101})", lifetime);
  EXPECT_EQ(late.status, 400U);
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", R"({"templateID":"own"})", key({.cpu_millis = 1000}))
                .status,
            400U);
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", R"({"templateID":"own"})", key({.memory_mib = 256}))
                .status,
            400U);
  const std::string two = key({.sandboxes = 2});
  world.create(R"({"templateID":"own"})", two);
  const std::string second = world.create(R"({"templateID":"own"})", two);
  const Answer third = world.ask("POST", "/v2/sandboxes", R"({"templateID":"own"})", two);
  EXPECT_EQ(third.status, 429U);
  EXPECT_EQ(third.headers.value("Should-Retry"), "false");
  EXPECT_EQ(world.ask("DELETE", "/sandboxes/" + second, "", two).status, 204U);
  world.create(R"({"templateID":"own"})", two);
}

TEST(E2bCreates, ARateIsKeptAndSaysWhenToComeAgain) {
  World world;
  const std::string slow =
      world.keys
          .issue({.team = "blue", .name = "k", .limits = {.creates_per_second = 1}, .expires = {}})
          .key;
  world.create(R"({"templateID":"own"})", slow);
  const Answer refused = world.ask("POST", "/v2/sandboxes", R"({"templateID":"own"})", slow);
  EXPECT_EQ(refused.status, 429U);
  EXPECT_EQ(refused.headers.value("Retry-After"), "1");
  EXPECT_EQ(refused.headers.find("Should-Retry"), nullptr);
  // It takes nothing from the team's other keys.
  const std::string other =
      world.keys.issue({.team = "blue", .name = "other", .limits = {}, .expires = {}}).key;
  world.create(R"({"templateID":"own"})", other);
  world.create(R"({"templateID":"own"})", other);
  world.clock.advance(std::chrono::seconds(1));
  world.create(R"({"templateID":"own"})", slow);
}

TEST(E2bCreates, WhatFailsLeavesNothingBehind) {
  World world;
  const std::string member = world.add_member();
  world.reach.fail("outfit");
  const char* wanted = R"({"templateID":"base","envVars":{"A":"1"}})";
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", wanted).status, 503U);
  EXPECT_FALSE(world.exists(member));
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", wanted).status, 503U);
  EXPECT_TRUE(world.client().list_all(client::kSandboxes, {}).items.empty());
  EXPECT_EQ(model::to_text(world.ask("GET", "/v2/sandboxes").body), "[]");
}

TEST(E2bCreates, WhatDoesNotBecomeReadyIsRemoved) {
  Options options = quick_options();
  options.start_patience = std::chrono::milliseconds(50);
  World world(options);
  world.node.stop_working();
  const Answer answer = world.ask("POST", "/v2/sandboxes", R"({"templateID":"base"})");
  EXPECT_EQ(answer.status, 504U);
  EXPECT_EQ(answer.headers.value("Should-Retry"), "false");
  EXPECT_TRUE(world.client().list_all(client::kSandboxes, {}).items.empty());
}

// The id of a sandbox that starts and stays at it; another one runs.
std::string find_starting(World& world, const std::string& other = {}) {
  std::string id;
  EXPECT_TRUE(eventually([&] {
    for (const Json& pod : world.client().list_all(client::kPods, {}).items)
      if (model::name_of(pod) != other) id = model::name_of(pod);
    return !id.empty();
  }));
  return id;
}

TEST(E2bCreates, StartingTakesNothingOfItsTime) {
  World world;
  world.node.stop_working();
  Answer answer;
  std::jthread asking(
      [&] { answer = world.ask("POST", "/v2/sandboxes", R"({"templateID":"base","timeout":5})"); });
  const std::string id = find_starting(world);
  ASSERT_FALSE(id.empty());
  const auto end = end_at(world.sandbox(id));
  ASSERT_TRUE(end) << "whatever dies now, it goes by itself";
  EXPECT_LT(*end, world.clock.now() + std::chrono::minutes(1));
  world.clock.advance(std::chrono::seconds(10));
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).status, 200U);
  world.node.restart_container("default", id);
  asking.join();
  ASSERT_EQ(answer.status, 201U) << answer.message();
  const Answer detail = world.ask("GET", "/sandboxes/" + id);
  EXPECT_EQ(detail.text("startedAt"), time_text(world.clock.now()));
  EXPECT_EQ(detail.text("endAt"), time_text(world.clock.now() + std::chrono::seconds(5)));
  const auto shutdown = parse_rfc3339(model::text_at(world.sandbox(id), {"spec", "shutdownTime"}));
  ASSERT_TRUE(shutdown);
  EXPECT_LT(*shutdown, world.clock.now() + std::chrono::seconds(6));
}

TEST(E2bCreates, OneThatStartsCountsOnce) {
  World world;
  const std::string two =
      world.keys.issue({.team = "blue", .name = "k", .limits = {.sandboxes = 2}, .expires = {}})
          .key;
  const auto create = [&] {
    return world.ask("POST", "/v2/sandboxes", R"({"templateID":"own"})", two);
  };
  world.node.stop_working();
  Answer first;
  std::jthread asking([&] { first = create(); });
  const std::string id = find_starting(world);
  ASSERT_TRUE(eventually(
      [&] { return world.ask("GET", "/sandboxes/" + id, "", world.blue).status == 200; }));
  world.node.work_again();
  const Answer second = create();
  EXPECT_EQ(second.status, 201U) << second.message();
  EXPECT_EQ(create().status, 429U);
  world.node.restart_container("blue", id);
  asking.join();
  EXPECT_EQ(first.status, 201U) << first.message();
}

TEST(E2bForks, StartingTakesNothingOfTheirTime) {
  World world;
  const std::string source = world.create();
  world.node.stop_working();
  Answer answer;
  std::jthread asking(
      [&] { answer = world.ask("POST", "/sandboxes/" + source + "/fork", R"({"timeout":5})"); });
  const std::string id = find_starting(world, source);
  ASSERT_FALSE(id.empty());
  world.clock.advance(std::chrono::seconds(10));
  world.node.restart_container("default", id);
  asking.join();
  ASSERT_EQ(answer.status, 201U) << answer.message();
  EXPECT_EQ(world.ask("GET", "/sandboxes/" + id).text("endAt"),
            time_text(world.clock.now() + std::chrono::seconds(5)));
}

TEST(E2bCreates, WhereThereIsNoRoomItIsSaid) {
  Options options = quick_options();
  options.start_patience = std::chrono::milliseconds(50);
  World world(options);
  world.node.fill_up();
  // A 504 where the scheduler was too slow for that patience.
  Answer answer;
  EXPECT_TRUE(eventually([&] {
    answer = world.ask("POST", "/v2/sandboxes", R"({"templateID":"base"})");
    return answer.status != 504;
  }));
  EXPECT_EQ(answer.status, 503U);
  EXPECT_EQ(answer.message(),
            "there is no room for another sandbox: 0/1 nodes are available: 1 Insufficient "
            "memory.");
  EXPECT_EQ(answer.headers.value("Should-Retry"), "false");
  EXPECT_TRUE(world.client().list_all(client::kSandboxes, {}).items.empty());
}

TEST(E2bCreates, WhatTheClusterRefusesIsToldAtOnce) {
  Options options = quick_options();
  options.start_patience = std::chrono::hours(1);
  World world(options);
  world.add_template("default", "odd");
  // What a schema allows, and the API of pods does not. The processors tell when it has arrived.
  world.client().patch(client::kSandboxTemplates, "default", "odd", client::PatchKind::json,
                       json(R"([
      {"op":"replace","path":"/spec/podTemplate/spec/containers/0/name","value":"Not_A_Name"},
      {"op":"replace","path":"/spec/podTemplate/spec/containers/0/resources/limits/cpu",
       "value":"7"}])"));
  ASSERT_TRUE(apiserver::eventually([&] {
    return model::to_text(world.ask("GET", "/templates").body).find("\"cpuCount\":7") !=
           std::string::npos;
  }));

  const Answer answer = world.ask("POST", "/v2/sandboxes", R"({"templateID":"odd"})");

  EXPECT_EQ(answer.status, 403U);
  EXPECT_NE(answer.message().find("is invalid: spec.containers[0].name"), std::string::npos)
      << answer.message();
  EXPECT_TRUE(world.client().list_all(client::kSandboxes, {}).items.empty());
}

TEST(E2bCreates, VariablesAreKeptBeforeAnybodyWaits) {
  Options options = quick_options();
  options.start_patience = std::chrono::hours(1);
  World world(options);
  world.node.stop_working();
  Answer answer;
  {
    const std::jthread asking([&] {
      answer = world.ask("POST", "/v2/sandboxes", R"({"templateID":"base","envVars":{"A":"b"}})");
    });
    EXPECT_TRUE(apiserver::eventually([&] {
      const auto secrets = world.client().list_all(client::kSecrets, {.ns = "default"}).items;
      return std::ranges::any_of(
          secrets, [](const Json& each) { return model::name_of(each).ends_with("-e2b"); });
    }));
    for (const Json& each : world.client().list_all(client::kSandboxes, {}).items)
      world.client().remove(client::kSandboxes, "default", model::name_of(each));
  }
  EXPECT_EQ(answer.status, 404U);
}

// Its variables are kept between its making and the wait for it: there it goes.
TEST(E2bCreates, OneThatIsGoneBeforeAnybodyWaitsIsNotWaitedFor) {
  Options options = quick_options();
  options.start_patience = std::chrono::hours(1);
  World world(options);
  world.node.stop_working();
  world.server->welcome(
      client::kSecrets, [&](const Json& secret) -> std::optional<client::Welcome> {
        if (!model::name_of(secret).ends_with("-e2b")) return std::nullopt;
        const client::WatchCache& cache = world.manager->cache(client::kSandboxes);
        EXPECT_TRUE(apiserver::eventually([&] { return !cache.list().empty(); }));
        for (const client::Object& each : cache.list())
          world.client().remove(client::kSandboxes, "default", model::name_of(*each));
        EXPECT_TRUE(apiserver::eventually([&] { return cache.list().empty(); }));
        return std::nullopt;
      });
  const Answer answer =
      world.ask("POST", "/v2/sandboxes", R"({"templateID":"base","envVars":{"A":"b"}})");
  EXPECT_EQ(answer.status, 404U);
  world.server->welcome(client::kSecrets, {});
}

TEST(E2bCreates, ABurstGetsDifferentSandboxes) {
  World world;
  std::set<std::string> members;
  for (int i = 0; i < 4; ++i) members.insert(world.add_member());
  std::mutex mutex;
  std::set<std::string> given;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i)
      threads.emplace_back([&] {
        const std::string id = world.create();
        const std::lock_guard lock(mutex);
        given.insert(id);
      });
  }
  EXPECT_EQ(given.size(), 6U);
  EXPECT_TRUE(std::ranges::includes(given, members));
  EXPECT_EQ(world.ask("GET", "/v2/sandboxes").headers.value("X-Total-Running"), "6");
}

TEST(E2bServes, WhoeverAsksInItsOwnDialect) {
  World world;
  world.api->start();
  const auto ask = [&](std::string method, std::string target, std::string body = {}) {
    http::Request request{.method = std::move(method), .target = std::move(target)};
    request.headers.set("X-API-Key", world.red);
    request.body = std::move(body);
    std::promise<http::Response> answered;
    world.api->ask(std::move(request),
                   [&](http::Response answer) { answered.set_value(std::move(answer)); });
    const http::Response response = answered.get_future().get();
    if (response.status >= 400) {
      EXPECT_EQ(model::number_at(json(response.body), {"code"}), response.status);
    }
    return response.status;
  };
  EXPECT_EQ(ask("GET", "/health"), 204U);
  EXPECT_EQ(ask("POST", "/v2/sandboxes", R"({"templateID":"base"})"), 201U);
  EXPECT_EQ(ask("GET", "/v2/sandboxes"), 200U);
  EXPECT_EQ(ask("GET", "/nowhere"), 404U);
  EXPECT_EQ(ask("GET", "/sandboxes/%zz"), 400U);
  EXPECT_EQ(ask("POST", "/v2/sandboxes", "{"), 400U);
  EXPECT_EQ(ask("POST", "/v2/sandboxes", std::string(2 << 20, ' ')), 413U);
  world.api->stop();
  EXPECT_EQ(ask("GET", "/health"), 503U);
}

TEST(E2bCreates, WithoutANodeAgentEnvdIsTold) {
  std::mutex mutex;
  std::vector<http::Request> told;
  net::Router envd;
  envd.add("POST", "/init", [&](const http::Request& request) {
    const std::lock_guard lock(mutex);
    told.push_back(request);
    return http::Response{.status = 204};
  });
  net::Server server({}, std::move(envd));
  server.start();
  Options options = quick_options();
  options.envd_port = server.port();
  World world(options, /*has_reach=*/false);
  const std::string id = world.create(R"({"templateID":"base","envVars":{"A":"1"}})");
  ASSERT_EQ(told.size(), 1U);
  const Json said = json(told[0].body);
  EXPECT_EQ(model::text_at(said, {"accessToken"}), world.tokens.envd_token({"default", id}));
  EXPECT_EQ(model::text_at(said, {"envVars", "A"}), "1");
  EXPECT_EQ(model::text_at(said, {"envVars", "E2B_SANDBOX_ID"}), id);
  EXPECT_EQ(
      world.ask("POST", "/v2/sandboxes", R"({"templateID":"base","allow_internet_access":false})")
          .status,
      501U);
  EXPECT_EQ(world.ask("POST", "/sandboxes/" + id + "/pause", R"({"memory":false})").status, 501U);
}

TEST(E2bCreate, WaitsForThoseThatStartAndForNoMoreThanThese) {
  Options options = quick_options();
  options.warm_patience = std::chrono::minutes(1);
  World world(options);
  const model::Key pool{"default", "base"};
  const std::string coming = new_sandbox_id();
  world.node.hold_back(coming);
  world.add_member("base", "default", coming, /*is_ready=*/false);
  std::string patient;
  std::jthread first([&] { patient = world.create(); });
  ASSERT_TRUE(eventually([&] { return world.allocator->stock(pool).waiting == 1; }));
  const std::string cold = world.create();
  EXPECT_EQ(model::label_of(world.sandbox(cold), model::kLaunchTypeLabel), "cold");
  EXPECT_EQ(world.allocator->stock(pool).waiting, 1U) << "the other one still waits";
  ASSERT_TRUE(eventually(
      [&] { return world.client().find(client::kPods, "default", coming).has_value(); }));
  world.node.restart_container("default", coming);
  first.join();
  EXPECT_EQ(patient, coming);
}

}  // namespace
}  // namespace hearth::e2b
