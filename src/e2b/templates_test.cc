#include "e2b/words.h"
#include "e2b/world_testing.h"

namespace hearth::e2b {
namespace {

std::vector<std::string> template_ids(const Answer& answer) {
  std::vector<std::string> ids;
  for (const Json& each : answer.body.as_array())
    ids.emplace_back(model::text_at(each, {"templateID"}));
  std::ranges::sort(ids);
  return ids;
}

using Ids = std::vector<std::string>;

TEST(E2bTemplates, AreListedForTheirTeam) {
  World world;
  EXPECT_EQ(template_ids(world.ask("GET", "/templates")), (Ids{"base", "private"}));
  EXPECT_EQ(template_ids(world.ask("GET", "/v2/templates")), (Ids{"base", "private"}));
  EXPECT_EQ(template_ids(world.ask("GET", "/templates?teamID=default")), (Ids{"base", "private"}));
  const Answer answer = world.ask("GET", "/templates", "", world.blue);
  ASSERT_EQ(template_ids(answer), (Ids{"own"}));
  const Json& entry = answer.body.at(0);
  for (const char* field :
       {"templateID", "buildID", "cpuCount", "memoryMB", "diskSizeMB", "public", "aliases", "names",
        "createdAt", "updatedAt", "createdBy", "lastSpawnedAt", "spawnCount", "buildCount",
        "envdVersion", "buildStatus"})
    EXPECT_TRUE(entry.as_object().contains(field)) << field;
  EXPECT_EQ(model::to_text(entry.at("aliases")), R"(["own"])");
  EXPECT_EQ(model::to_text(entry.at("names")), R"(["blue/own"])");
  EXPECT_EQ(model::number_at(entry, {"memoryMB"}), 512);
  EXPECT_EQ(model::number_at(entry, {"spawnCount"}), 0);
  EXPECT_TRUE(entry.at("lastSpawnedAt").is_null());
  EXPECT_EQ(world.ask("GET", "/templates?teamID=blue").status, 403U);
  EXPECT_EQ(world.ask("GET", "/templates", "", "").status, 401U);
}

TEST(E2bTemplates, ComeInPages) {
  World world;
  Answer page = world.ask("GET", "/v2/templates?limit=1");
  Ids seen = template_ids(page);
  ASSERT_EQ(seen.size(), 1U);
  const std::string next(page.headers.value("X-Next-Token"));
  page = world.ask("GET", "/v2/templates?limit=1&nextToken=" + next);
  for (const std::string& each : template_ids(page)) seen.push_back(each);
  std::ranges::sort(seen);
  EXPECT_EQ(seen, (Ids{"base", "private"}));
  EXPECT_EQ(page.headers.find("X-Next-Token"), nullptr);
  EXPECT_EQ(world.ask("GET", "/v2/templates?nextToken=nonsense").status, 400U);
  EXPECT_EQ(world.ask("GET", "/v2/templates?limit=1000").status, 400U);
}

TEST(E2bTemplates, AreShownWithTheirBuild) {
  World world;
  world.create(R"({"templateID":"private"})");
  const Answer answer = world.ask("GET", "/templates/private");
  ASSERT_EQ(answer.status, 200U);
  EXPECT_EQ(answer.text("templateID"), "private");
  EXPECT_EQ(model::number_at(answer.body, {"spawnCount"}), 1);
  ASSERT_EQ(answer.body.at("builds").as_array().size(), 1U);
  EXPECT_EQ(model::text_at(answer.body.at_pointer("/builds/0"), {"status"}), "ready");
  // Public ones for everybody, others' own for nobody else.
  EXPECT_EQ(world.ask("GET", "/templates/base", "", world.blue).status, 200U);
  EXPECT_EQ(world.ask("GET", "/templates/private", "", world.blue).status, 404U);
  EXPECT_EQ(world.ask("GET", "/templates/default%2Fprivate", "", world.blue).status, 404U);
  EXPECT_EQ(world.ask("GET", "/templates/none").status, 404U);
  EXPECT_EQ(world.ask("GET", "/templates/no%20ne").status, 400U);
}

TEST(E2bTemplates, GoWithTheirPool) {
  World world;
  EXPECT_EQ(world.ask("DELETE", "/templates/base", "", world.blue).status, 403U);
  EXPECT_EQ(world.ask("DELETE", "/templates/private", "", world.blue).status, 404U);
  EXPECT_EQ(world.ask("DELETE", "/templates/base").status, 204U);
  EXPECT_EQ(world.ask("DELETE", "/templates/base").status, 404U);
  EXPECT_FALSE(world.client().find(client::kSandboxTemplates, "default", "base"));
  EXPECT_FALSE(world.client().find(client::kSandboxWarmPools, "default", "base"));
  EXPECT_EQ(world.ask("POST", "/v2/sandboxes", R"({"templateID":"base"})").status, 404U);
}

TEST(E2bTemplates, CanBeMadePublic) {
  World world;
  const auto create = [&] {
    return world.ask("POST", "/v2/sandboxes", R"({"templateID":"blue/own"})").status;
  };
  EXPECT_EQ(create(), 404U);
  EXPECT_EQ(world.ask("PATCH", "/v2/templates/own", R"({"public":true})").status, 404U);
  Answer answer = world.ask("PATCH", "/v2/templates/own", R"({"public":true})", world.blue);
  EXPECT_EQ(answer.status, 200U);
  EXPECT_EQ(model::to_text(answer.body.at("names")), R"(["blue/own"])");
  EXPECT_EQ(create(), 201U);
  EXPECT_EQ(world.ask("PATCH", "/templates/blue%2Fown", R"({"public":false})").status, 403U);
  EXPECT_EQ(world.ask("PATCH", "/templates/own", R"({"public":false})", world.blue).status, 200U);
  EXPECT_EQ(create(), 404U);
  EXPECT_EQ(world.ask("PATCH", "/templates/own", R"({"public":1})", world.blue).status, 400U);
  EXPECT_EQ(world.ask("PATCH", "/templates/own", "{}", world.blue).status, 200U);
}

TEST(E2bAliases, TellWhoseTheyAre) {
  World world;
  const Answer own = world.ask("GET", "/templates/aliases/private");
  EXPECT_EQ(own.status, 200U);
  EXPECT_EQ(own.text("templateID"), "private");
  EXPECT_FALSE(model::is_true_at(own.body, {"public"}));
  EXPECT_TRUE(model::is_true_at(world.ask("GET", "/templates/aliases/base", "", world.blue).body,
                                {"public"}));
  EXPECT_EQ(world.ask("GET", "/templates/aliases/private", "", world.blue).status, 403U);
  EXPECT_EQ(world.ask("GET", "/templates/aliases/default%2Fprivate", "", world.blue).status, 403U);
  EXPECT_EQ(world.ask("GET", "/templates/aliases/none").status, 404U);
  EXPECT_EQ(world.ask("GET", "/templates/aliases/blue%2Fprivate").status, 404U);
  EXPECT_EQ(world.ask("GET", "/templates/aliases/a%3Ab%3Ac").status, 400U);
}

TEST(E2bTags, AreFurtherNames) {
  World world;
  Answer answer =
      world.ask("POST", "/templates/tags", R"({"target":"private","tags":["v1","stable"]})");
  ASSERT_EQ(answer.status, 201U) << answer.message();
  EXPECT_EQ(model::to_text(answer.body.at("tags")), R"(["v1","stable"])");
  const Json object = world.client().get(client::kSandboxTemplates, "default", "private");
  EXPECT_EQ(answer.text("buildID"), model::uid_of(object));
  EXPECT_EQ(world.ask("GET", "/templates/private%3Av1").text("templateID"), "private");
  answer = world.ask("GET", "/templates/private/tags");
  ASSERT_EQ(answer.body.as_array().size(), 3U);
  EXPECT_EQ(model::text_at(answer.body.at(0), {"tag"}), "default");
  EXPECT_EQ(model::text_at(answer.body.at(2), {"tag"}), "v1");
  EXPECT_EQ(world.ask("DELETE", "/templates/tags", R"({"name":"private","tags":["v1"]})").status,
            204U);
  EXPECT_EQ(world.ask("GET", "/templates/private%3Av1").status, 404U);
  EXPECT_EQ(world.ask("GET", "/templates/private%3Astable").status, 200U);
  // Once more changes nothing.
  EXPECT_EQ(world.ask("DELETE", "/templates/tags", R"({"name":"private","tags":["v1"]})").status,
            204U);
}

TEST(E2bTags, MoveBetweenBuilds) {
  World world;
  const std::string id = world.create();
  for (const char* name : {"mine:one", "mine:two"})
    ASSERT_EQ(world
                  .ask("POST", "/sandboxes/" + id + "/snapshots",
                       R"({"name":")" + std::string(name) + R"("})")
                  .status,
              201U);
  const auto tag = [&](const std::string& target) {
    const Answer answer = world.ask("POST", "/templates/tags",
                                    R"({"target":")" + target + R"(","tags":["default"]})");
    EXPECT_EQ(answer.status, 201U) << answer.message();
    return answer.text("buildID");
  };
  const std::string one = tag("mine:one");
  const auto shown = [&] { return world.ask("GET", "/templates/mine").body; };
  EXPECT_EQ(model::text_at(shown().at_pointer("/builds/0"), {"buildID"}), one);
  const std::string two = tag("mine:two");
  EXPECT_NE(one, two);
  EXPECT_EQ(model::text_at(shown().at_pointer("/builds/0"), {"buildID"}), two);
  EXPECT_EQ(world.ask("GET", "/templates/mine/tags").body.as_array().size(), 3U);
}

TEST(E2bTags, RefuseWhatCannotBe) {
  World world;
  const auto add = [&](const std::string& body, std::optional<std::string> key = {}) {
    return world.ask("POST", "/templates/tags", body, std::move(key)).status;
  };
  EXPECT_EQ(add(R"({"target":"private"})"), 400U);
  EXPECT_EQ(add(R"({"target":"private","tags":[]})"), 400U);
  EXPECT_EQ(add(R"({"target":"private","tags":["a b"]})"), 400U);
  EXPECT_EQ(add(R"({"target":"private","tags":["a,b"]})"), 400U);
  EXPECT_EQ(add(R"({"target":"private","tags":["123e4567-e89b-12d3-a456-426614174000"]})"), 400U);
  EXPECT_EQ(add(R"({"target":"private","tags":[1]})"), 400U);
  EXPECT_EQ(add(R"({"tags":["a"]})"), 400U);
  EXPECT_EQ(add(R"({"target":"none","tags":["a"]})"), 404U);
  EXPECT_EQ(add(R"({"target":"private","tags":["a"]})", world.blue), 404U);
  EXPECT_EQ(add(R"({"target":"default/private","tags":["a"]})", world.blue), 403U);
  EXPECT_EQ(add(R"({"target":"base","tags":["a"]})", world.blue), 403U);
  const auto remove = [&](const std::string& body, std::optional<std::string> key = {}) {
    return world.ask("DELETE", "/templates/tags", body, std::move(key)).status;
  };
  EXPECT_EQ(remove(R"({"name":"private","tags":["default"]})"), 400U);
  EXPECT_EQ(remove(R"({"name":"private"})"), 400U);
  EXPECT_EQ(remove(R"({"tags":["a"]})"), 400U);
  EXPECT_EQ(remove(R"({"name":"none","tags":["a"]})"), 404U);
  EXPECT_EQ(remove(R"({"name":"private","tags":["a"]})", world.blue), 404U);
  EXPECT_EQ(remove(R"({"name":"default/private","tags":["a"]})", world.blue), 403U);
  EXPECT_EQ(world.ask("GET", "/templates/private/tags", "", world.blue).status, 404U);
  std::string many;
  for (int i = 0; i < 101; ++i) many += (i > 0 ? ",\"t" : "\"t") + std::to_string(i) + "\"";
  EXPECT_EQ(add(R"({"target":"private","tags":[)" + many + "]}"), 400U);
}

TEST(E2bBuilder, IsNotOffered) {
  World world;
  using Call = std::pair<const char*, const char*>;
  for (const auto& [method, target] :
       {Call{"POST", "/v3/templates"}, Call{"POST", "/v2/templates"}, Call{"POST", "/templates"},
        Call{"POST", "/templates/base"}, Call{"POST", "/v2/templates/base/builds/1"},
        Call{"GET", "/templates/base/builds/1/status"}, Call{"GET", "/templates/base/files/00"},
        Call{"GET", "/templates/base/tags/count"}, Call{"GET", "/default-templates"},
        Call{"GET", "/volumes"}, Call{"DELETE", "/volumes/a"}, Call{"POST", "/secrets"},
        Call{"GET", "/nodes"}, Call{"POST", "/access-tokens"}, Call{"GET", "/events/sandboxes"}}) {
    EXPECT_EQ(world.ask(method, target, "{}").status, 501U) << target;
    EXPECT_EQ(world.ask(method, target, "{}", "").status, 401U) << target;
  }
}

}  // namespace
}  // namespace hearth::e2b
