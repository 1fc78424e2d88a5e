// What claims bring along reaches warm sandboxes, or makes them cold.
#include "base/time_text.h"
#include "controllers/claim_testing.h"

namespace hearth::controllers {
namespace {

using model::text_at;

// Who takes it all and says so.
class NotingOutfitter final : public pool::Outfitter {
 public:
  bool can_outfit(const Json&) override { return can; }
  void outfit(const Json& pod, const pool::Outfit& outfit) override {
    if (fails) fail(Code::unavailable, "no luck with '{}'", outfit.environment.at(0));
    for (const std::string& variable : outfit.environment)
      noted.push_back(std::string(model::name_of(pod)) + " " + variable);
    for (const auto& volume : outfit.volumes)
      noted.push_back(volume.claim_name + " " + volume.path);
  }
  bool can = true;
  bool fails = false;
  std::vector<std::string> noted;
};

void add_pod(ClaimWorld& world, std::string_view name) {
  Json pod = json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default"},
    "spec":{"containers":[{"name":"main","image":"x"}]}})");
  pod.at("metadata").as_object()["name"] = name;
  world.client().create(client::kPods, pod);
}

constexpr std::string_view kWithVariable = R"({"env":[{"name":"A","value":"hush"}]})";

TEST(ClaimOutfits, VariablesReachAWarmSandbox) {
  NotingOutfitter outfitter;
  ClaimWorld world({}, &outfitter);
  world.patch_template(R"({"spec":{"envVarsInjectionPolicy":"Allowed"}})");
  world.add_member("pool-a");
  add_pod(world, "pool-a");
  world.add_claim("c", kWithVariable);
  world.pass();
  EXPECT_EQ(world.ready(), "True DependenciesReady: Pod is Ready");
  EXPECT_EQ(world.bound(), "pool-a");
  EXPECT_EQ(outfitter.noted, std::vector<std::string>{"pool-a A=hush"});
  // Not again, not even by another process; but again for another pod.
  world.pass();
  world.restart();
  world.pass();
  EXPECT_EQ(outfitter.noted.size(), 1U);
  world.client().remove(client::kPods, "default", "pool-a", {.grace_seconds = 0});
  ASSERT_TRUE(eventually([&] { return !world.client().find(client::kPods, "default", "pool-a"); }));
  add_pod(world, "pool-a");
  world.pass();
  EXPECT_EQ(outfitter.noted.size(), 2U);
}

TEST(ClaimOutfits, AnOutfitThatFailsIsTriedAgainAndTellsNothing) {
  NotingOutfitter outfitter;
  outfitter.fails = true;
  ClaimWorld world({}, &outfitter);
  world.patch_template(R"({"spec":{"envVarsInjectionPolicy":"Allowed"}})");
  world.add_member("pool-a");
  add_pod(world, "pool-a");
  world.add_claim("c", kWithVariable);
  EXPECT_THROW(world.pass(), Error);
  EXPECT_EQ(world.ready(),
            "False ReconcilerError: Error seen: cannot outfit sandbox 'pool-a': the "
            "reason is withheld: it holds a value of the claim");
  EXPECT_EQ(world.bound(), "pool-a");
  outfitter.fails = false;
  world.pass();
  EXPECT_EQ(world.ready(), "True DependenciesReady: Pod is Ready");
  EXPECT_EQ(world.owned().size(), 1U);
}

TEST(ClaimOutfits, VariablesStartColdWhereNobodyReachesIn) {
  NotingOutfitter outfitter;
  outfitter.can = false;
  ClaimWorld world({}, &outfitter);
  world.add_member("pool-a");
  add_pod(world, "pool-a");
  world.add_claim("refused", kWithVariable);
  EXPECT_EQ(world.pass("refused"), reconcile::kWhenChanged);
  EXPECT_TRUE(world.ready("refused").starts_with("False EnvVarsInjectionRejected: "));
  world.patch_template(R"({"spec":{"envVarsInjectionPolicy":"Allowed"}})");
  world.add_claim("c", kWithVariable);
  world.pass();
  EXPECT_EQ(world.bound(), "c");
  EXPECT_EQ(text_at(world.sandbox("c").at_pointer("/spec/podTemplate/spec/containers/0/env/0"),
                    {"value"}),
            "hush");
  EXPECT_TRUE(outfitter.noted.empty());
}

TEST(ClaimOutfits, VolumesWithAPlaceReachAWarmSandbox) {
  NotingOutfitter outfitter;
  ClaimWorld world({}, &outfitter);
  world.patch_template(R"({"spec":{"volumeClaimTemplatesPolicy":"Allowed"}})");
  world.add_member("pool-a");
  add_pod(world, "pool-a");
  world.add_claim("c", R"({"volumeClaimTemplates":[{"metadata":{"name":"data"},"mountPath":"/data",
    "spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]})");
  world.pass();
  EXPECT_EQ(world.bound(), "pool-a");
  EXPECT_EQ(outfitter.noted, std::vector<std::string>{"data-pool-a /data"});
  const Json volume = world.client().get(client::kPersistentVolumeClaims, "default", "data-pool-a");
  EXPECT_TRUE(model::is_controlled_by(volume, model::uid_of(world.sandbox("pool-a"))));
}

}  // namespace
}  // namespace hearth::controllers
