#include "controllers/warm_pool_reconciler.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "controllers/warm_pool_testing.h"
#include "model/front_door.h"

namespace hearth::controllers {
namespace {

using client::kSandboxes;
using client::kSandboxTemplates;
using client::kSandboxWarmPools;

class WarmPool : public testing::Test {
 protected:
  void make(const Json& pool, std::string_view image = "python:3.12") {
    world_.client().create(kSandboxTemplates, template_named("py", image));
    world_.client().create(kSandboxWarmPools, pool);
    world_.settle();
  }
  std::size_t count() { return world_.members().size(); }
  std::int64_t replicas() { return model::number_at(world_.status(), {"replicas"}).value_or(-1); }
  std::int64_t ready() { return model::number_at(world_.status(), {"readyReplicas"}).value_or(-1); }
  // With the pool's label, as the pool would make it, but nobody's.
  Json make_orphan(std::string_view name) {
    const Json pool = world_.pool();
    const Json sandbox_template = world_.client().get(kSandboxTemplates, "default", "py");
    Json orphan = make_member(pool, blueprint_of(sandbox_template), true);
    auto& metadata = orphan.at("metadata").as_object();
    metadata["name"] = name;
    metadata.erase("ownerReferences");
    metadata.erase("generateName");
    model::erase_at(orphan, {"metadata", "labels", model::kLaunchTypeLabel});
    return orphan;
  }
  std::vector<std::string> told() {
    world_.events.flush();
    std::vector<std::string> reasons;
    for (const Json& event : world_.client().list_all(client::kEvents, {.ns = "default"}).items)
      reasons.emplace_back(model::text_at(event, {"reason"}));
    return reasons;
  }

  PoolWorld world_;
};

// P1
TEST_F(WarmPool, WithoutReplicasThereIsOne) {
  make(pool_named("pool", -1));
  EXPECT_EQ(count(), 1U);
}

TEST_F(WarmPool, FollowsReplicasUpAndDown) {
  make(pool_named("pool", 3));
  EXPECT_EQ(count(), 3U);
  EXPECT_EQ(replicas(), 3);
  world_.patch_pool(R"({"spec":{"replicas":7}})");
  world_.settle();
  EXPECT_EQ(count(), 7U);
  world_.patch_pool(R"({"spec":{"replicas":2}})");
  world_.settle();
  EXPECT_EQ(count(), 2U);
  world_.patch_pool(R"({"spec":{"replicas":0}})");
  world_.settle();
  EXPECT_EQ(count(), 0U);
}

TEST_F(WarmPool, OneThatIsLargeRestsAfterItHasBeenCounted) {
  make(pool_named("pool", 300));
  EXPECT_EQ(count(), 300U);
  // The second of two that follow each other comes too early, whichever was the first to count.
  reconcile::Next next;
  ASSERT_TRUE(apiserver::eventually([&] {
    world_.reconciler.reconcile({"default", "pool"});
    next = world_.reconciler.reconcile({"default", "pool"});
    return next.has_value();
  }));
  EXPECT_LE(*next, std::chrono::milliseconds(250));
}

TEST_F(WarmPool, NamesItsMembersAsItIsTold) {
  make(pool_named("pool", 2));
  for (const std::string& name : world_.names()) EXPECT_EQ(name.find("pool-"), 0U) << name;
  world_.patch_pool(
      R"({"spec":{"replicas":6},"metadata":{"annotations":{"hearth.dev/sandbox-names":"id"}}})");
  world_.settle();
  std::set<std::string> ids;
  for (const std::string& name : world_.names())
    if (name.find("pool-") != 0) ids.insert(name);
  EXPECT_EQ(ids.size(), 4U);
  for (const std::string& id : ids) {
    EXPECT_EQ(id.size(), 21U) << id;
    EXPECT_EQ(id.front(), 'i') << id;
    EXPECT_EQ(id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"), std::string::npos);
    const Json member = world_.client().get(kSandboxes, "default", id);
    EXPECT_EQ(model::text_at(
                  member, {"spec", "podTemplate", "metadata", "annotations", "hearth.dev/dress"}),
              model::text_at(world_.client().get(kSandboxWarmPools, "default", "pool"),
                             {"spec", "sandboxTemplateRef", "name"}));
  }
}

TEST_F(WarmPool, TopsUpWhatWasTakenOrDeleted) {
  make(pool_named("pool", 3));
  const auto before = world_.names();
  world_.claim(before[0]);
  world_.client().remove(kSandboxes, "default", before[1]);
  world_.settle();
  const auto after = world_.names();
  EXPECT_EQ(after.size(), 3U);
  EXPECT_EQ(std::ranges::count(after, before[0]), 0);
  EXPECT_EQ(std::ranges::count(after, before[2]), 1);
  EXPECT_TRUE(world_.client().find(kSandboxes, "default", before[0])) << "claimed ones stay";
}

TEST_F(WarmPool, ExcessGoesUnreadyFirst) {
  make(pool_named("pool", 3));
  const auto names = world_.names();
  world_.make_ready(names[0]);
  world_.make_ready(names[2]);
  world_.patch_pool(R"({"spec":{"replicas":2}})");
  world_.settle();
  EXPECT_EQ(world_.names(), (std::vector{names[0], names[2]}));
}

// P2
TEST_F(WarmPool, AdoptsOrphansThatFit) {
  make(pool_named("pool", 0));
  world_.client().create(kSandboxes, make_orphan("orphan"));
  world_.patch_pool(R"({"spec":{"replicas":1}})");
  world_.settle();
  EXPECT_EQ(world_.names(), std::vector<std::string>{"orphan"});
  const Json adopted = world_.client().get(kSandboxes, "default", "orphan");
  EXPECT_TRUE(model::is_controlled_by(adopted, model::uid_of(world_.pool())));
  EXPECT_EQ(model::label_of(adopted, model::kLaunchTypeLabel), "warm");
}

TEST_F(WarmPool, OrphansThatDoNotFitGo) {
  make(pool_named("pool", 1));
  Json orphan = make_orphan("orphan");
  orphan.at_pointer("/spec/podTemplate/spec/containers/0").as_object()["image"] = "other";
  world_.client().create(kSandboxes, orphan);
  world_.settle();
  EXPECT_FALSE(world_.client().find(kSandboxes, "default", "orphan"));
  EXPECT_EQ(count(), 1U);
}

TEST_F(WarmPool, SomebodyElsesAreIgnored) {
  make(pool_named("pool", 1));
  Json foreign = make_orphan("foreign");
  foreign.at("metadata").as_object()["ownerReferences"] =
      claiming_patch().at_pointer("/metadata/ownerReferences");
  foreign.at_pointer("/spec/podTemplate/spec/containers/0").as_object()["image"] = "other";
  world_.client().create(kSandboxes, foreign);
  world_.settle();
  EXPECT_TRUE(world_.client().find(kSandboxes, "default", "foreign"));
  EXPECT_EQ(count(), 2U);
  EXPECT_EQ(replicas(), 1);
}

TEST_F(WarmPool, MembersOfOldGetTheLabelOfWarmOnes) {
  make(pool_named("pool", 1));
  world_.patch_sandbox(world_.names()[0],
                       {{"metadata", {{"labels", {{model::kLaunchTypeLabel, nullptr}}}}}});
  world_.settle();
  EXPECT_EQ(model::label_of(world_.members()[0], model::kLaunchTypeLabel), "warm");
}

// P3, P4
TEST_F(WarmPool, MembersLookAsClaimsExpectThem) {
  make(pool_named("pool", 1));
  const Json member = world_.members().at(0);
  const Blueprint blueprint = blueprint_of(world_.client().get(kSandboxTemplates, "default", "py"));
  EXPECT_TRUE(model::name_of(member).starts_with("pool-"));
  EXPECT_EQ(model::label_of(member, model::kPoolLabel), "91dd7983");
  EXPECT_EQ(model::label_of(member, model::kTemplateRefHashLabel), model::name_hash("py"));
  EXPECT_EQ(model::label_of(member, model::kLaunchTypeLabel), "warm");
  EXPECT_EQ(model::label_of(member, model::kPodTemplateHashLabel), blueprint.pod_hash);
  EXPECT_EQ(model::label_of(member, model::kTemplateHashLabel), blueprint.hash);
  EXPECT_EQ(model::label_of(member, model::kCreatedByLabel), "controller");
  EXPECT_EQ(model::annotation_of(member, model::kTemplateRefAnnotation), "py");
  EXPECT_EQ(model::annotation_of(member, model::kPodNameAnnotation), model::name_of(member));
  const auto owner = model::controller_of(member);
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->kind, "SandboxWarmPool");
  EXPECT_EQ(owner->api_version, "extensions.agents.x-k8s.io/v1beta1");
  const Json& pod = member.at_pointer("/spec/podTemplate");
  EXPECT_EQ(model::object_at(pod, {"metadata", "labels"})->size(), 4U);
  EXPECT_EQ(model::label_of(pod, model::kPoolLabel), "91dd7983");
  EXPECT_EQ(model::annotation_of(pod, model::kSafeToEvictAnnotation), "true");
  EXPECT_EQ(model::text_at(pod, {"spec", "dnsPolicy"}), "None");
  EXPECT_FALSE(pod.at_pointer("/spec/automountServiceAccountToken").as_bool());
}

// P5
TEST_F(WarmPool, StatusCountsAndClearsZeros) {
  make(pool_named("pool", 2));
  EXPECT_EQ(replicas(), 2);
  EXPECT_EQ(ready(), -1) << "zero is absent";
  EXPECT_EQ(model::text_at(world_.status(), {"selector"}),
            "agents.x-k8s.io/warm-pool-sandbox=91dd7983");
  world_.make_ready(world_.names()[0]);
  world_.settle();
  EXPECT_EQ(ready(), 1);
  EXPECT_EQ(model::number_at(world_.status(), {"observedGeneration"}),
            model::generation_of(world_.pool()));
  world_.patch_pool(R"({"spec":{"replicas":0}})");
  world_.settle();
  EXPECT_EQ(model::to_text(world_.status()),
            R"({"selector":"agents.x-k8s.io/warm-pool-sandbox=91dd7983","observedGeneration":2})");
}

TEST_F(WarmPool, SomebodyElsesStatusIsPutRight) {
  make(pool_named("pool", 2));
  world_.client().patch(kSandboxWarmPools, "default", "pool", client::PatchKind::merge,
                        json(R"({"status":{"replicas":77}})"), {.subresource = "status"});
  world_.settle();
  EXPECT_EQ(replicas(), 2);
}

// P6
TEST_F(WarmPool, MembersThatDoNotGetReadyAreReplaced) {
  make(pool_named("pool", 2));
  const auto before = world_.names();
  world_.make_ready(before[0]);
  world_.clock.advance(std::chrono::minutes(4));
  const auto next = world_.reconcile();
  EXPECT_EQ(world_.names(), before);
  ASSERT_TRUE(next);
  EXPECT_GE(*next, std::chrono::seconds(60)) << "at the deadline, which timestamps round";
  EXPECT_LE(*next, std::chrono::seconds(95));
  world_.clock.advance(std::chrono::seconds(63));
  world_.reconcile();
  EXPECT_EQ(world_.names(), std::vector{before[0]});
  world_.reconcile();
  EXPECT_EQ(count(), 2U);
}

// P14: unschedulable
TEST_F(WarmPool, MembersThatFindNoNodeAreKept) {
  make(pool_named("pool", 1));
  const auto before = world_.names();
  world_.set_condition(before[0], "PodScheduled", "False", "Unschedulable");
  world_.clock.advance(std::chrono::minutes(6));
  const auto next = world_.reconcile();
  world_.reconcile();
  EXPECT_EQ(world_.names(), before);
  ASSERT_TRUE(next);
  EXPECT_EQ(*next, std::chrono::minutes(1));
  EXPECT_EQ(told(), std::vector<std::string>{"WarmPoolNotProgressing"});
  const auto events = world_.client().list_all(client::kEvents, {.ns = "default"}).items;
  EXPECT_EQ(model::text_at(events[0], {"note"}),
            "1/1 sandboxes are unschedulable past the 5m0s readiness grace period; holding them "
            "instead of replacing (replacements would be equally unschedulable)");
  world_.make_ready(before[0]);
  world_.settle();
  EXPECT_EQ(std::ranges::count(told(), "WarmPoolProgressing"), 1);
}

// P7, E12
TEST_F(WarmPool, RecreateReplacesIdleMembersOfTheOldTemplate) {
  make(pool_named("pool", 3, "Recreate"));
  const auto before = world_.names();
  world_.claim(before[0]);
  world_.settle();
  world_.patch_template(
      R"({"spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"new"}]}}}})");
  world_.settle();
  EXPECT_EQ(count(), 3U);
  for (const Json& member : world_.members())
    EXPECT_EQ(model::text_at(member.at_pointer("/spec/podTemplate/spec/containers/0"), {"image"}),
              "new");
  EXPECT_TRUE(world_.client().find(kSandboxes, "default", before[0])) << "claimed ones stay";
}

TEST_F(WarmPool, OnReplenishLeavesThemAndMakesNewOnesOfTheNew) {
  for (const char* strategy : {"", "OnReplenish"}) {
    PoolWorld world;
    world.client().create(kSandboxTemplates, template_named("py"));
    world.client().create(kSandboxWarmPools, pool_named("pool", 2, strategy));
    world.settle();
    const auto before = world.names();
    world.patch_template(
        R"({"spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"new"}]}}}})");
    world.settle();
    EXPECT_EQ(world.names(), before);
    world.claim(before[0]);
    world.settle();
    std::vector<std::string> images;
    for (const Json& member : world.members())
      images.emplace_back(
          model::text_at(member.at_pointer("/spec/podTemplate/spec/containers/0"), {"image"}));
    std::ranges::sort(images);
    EXPECT_EQ(images, (std::vector<std::string>{"new", "python:3.12"}));
  }
}

TEST_F(WarmPool, ChangesOfMetadataOnlyReplaceNobody) {
  make(pool_named("pool", 2, "Recreate"));
  const auto before = world_.names();
  world_.patch_template(R"({"spec":{"podTemplate":{"metadata":{"labels":{"a":"b"}}}}})");
  world_.settle();
  EXPECT_EQ(world_.names(), before);
}

TEST_F(WarmPool, AnotherTemplateReplacesEvenEqualMembers) {
  make(pool_named("pool", 2, "Recreate"));
  const auto before = world_.names();
  world_.client().create(kSandboxTemplates, template_named("py2"));
  follow(world_.client(), kSandboxTemplates, world_.templates, "py2");
  world_.patch_pool(R"({"spec":{"sandboxTemplateRef":{"name":"py2"}}})");
  world_.settle();
  const auto after = world_.names();
  EXPECT_EQ(after.size(), 2U);
  for (const auto& name : before) EXPECT_EQ(std::ranges::count(after, name), 0);
}

TEST_F(WarmPool, AnotherNetworkPolicyChangesNameServersAndSoReplaces) {
  make(pool_named("pool", 1, "Recreate"));
  world_.patch_template(R"({"spec":{"networkPolicyManagement":"Unmanaged"}})");
  world_.settle();
  ASSERT_EQ(count(), 1U);
  EXPECT_EQ(model::text_at(world_.members()[0], {"spec", "podTemplate", "spec", "dnsPolicy"}), "");
}

TEST_F(WarmPool, WithoutATemplateItStillCountsAndShrinks) {
  make(pool_named("pool", 3));
  world_.client().remove(kSandboxTemplates, "default", "py");
  world_.client().remove(kSandboxes, "default", world_.names()[0]);
  world_.settle();
  EXPECT_EQ(count(), 2U);
  EXPECT_EQ(replicas(), 2);
  world_.patch_pool(R"({"spec":{"replicas":1}})");
  world_.settle();
  EXPECT_EQ(count(), 1U);
  world_.patch_pool(R"({"spec":{"replicas":2}})");
  world_.client().create(kSandboxTemplates, template_named("py"));
  world_.settle();
  EXPECT_EQ(count(), 2U);
}

// P14
TEST_F(WarmPool, ACacheThatIsBehindMakesNoMore) {
  world_.client().create(kSandboxTemplates, template_named("py"));
  world_.client().create(kSandboxWarmPools, pool_named("pool", 5));
  world_.follow_all();
  // Each of these passes sees what the cache has by chance; none may make a sixth.
  for (int i = 0; i < 20; ++i) world_.reconciler.reconcile({"default", "pool"});
  EXPECT_EQ(world_.watched.creates, 5U);
  world_.settle();
  EXPECT_EQ(world_.watched.creates, 5U);
  EXPECT_EQ(world_.watched.removes, 0U);
}

TEST_F(WarmPool, MembersThatEndStillTakeRoom) {
  make(pool_named("pool", 2));
  const auto before = world_.names();
  world_.patch_sandbox(before[0], json(R"({"metadata":{"finalizers":["a.test/hold"]}})"));
  world_.client().remove(kSandboxes, "default", before[0]);
  world_.settle();
  EXPECT_EQ(world_.names(), before);
  EXPECT_EQ(replicas(), 1);
  world_.patch_sandbox(before[0], json(R"({"metadata":{"finalizers":[]}})"));
  world_.settle();
  EXPECT_EQ(count(), 2U);
  EXPECT_EQ(replicas(), 2);
}

TEST_F(WarmPool, OneThatIsClaimedInTheSameMomentSurvives) {
  make(pool_named("pool", 1));
  const auto before = world_.names();
  world_.watched.before_remove = [&](std::string_view name) { world_.claim(name); };
  world_.patch_pool(R"({"spec":{"replicas":0}})");
  const auto next = world_.reconcile();
  EXPECT_EQ(world_.watched.removes, 1U);
  EXPECT_TRUE(next) << "it looks again";
  world_.settle();
  EXPECT_TRUE(world_.client().find(kSandboxes, "default", before[0]));
  EXPECT_EQ(world_.watched.removes, 1U);
}

// A cache that lists anew may see a member for the first time when it is somebody's already.
TEST(WarmPoolOptions, OneThatIsClaimedBeforeItIsSeenIsNotWaitedFor) {
  PoolWorld world({}, PoolWorld::Sandboxes::unwatched);
  world.client().create(kSandboxTemplates, template_named("py"));
  world.client().create(kSandboxWarmPools, pool_named("pool", 1));
  follow(world.client(), kSandboxTemplates, world.templates, "py");
  follow(world.client(), kSandboxWarmPools, world.pools, "pool");
  world.reconciler.reconcile({"default", "pool"});
  world.reconciler.reconcile({"default", "pool"});
  ASSERT_EQ(world.watched.creates, 1U) << "the first is expected";
  world.claim(world.names().at(0));
  PoolWorld::start(world.sandboxes);
  world.settle();
  EXPECT_EQ(world.watched.creates, 2U);
  EXPECT_EQ(world.members().size(), 1U);
}

TEST(WarmPoolOptions, NeitherIsOneThatAFrontDoorTookByAnotherName) {
  PoolWorld world({}, PoolWorld::Sandboxes::unwatched);
  world.client().create(kSandboxTemplates, template_named("py"));
  Json pool = pool_named("pool", 1);
  model::make_object_at(pool, {"metadata", "annotations"})["hearth.dev/sandbox-names"] = "id";
  world.client().create(kSandboxWarmPools, pool);
  follow(world.client(), kSandboxTemplates, world.templates, "py");
  follow(world.client(), kSandboxWarmPools, world.pools, "pool");
  world.reconciler.reconcile({"default", "pool"});
  Json taken = claiming_patch();
  taken.at("metadata").as_object()["ownerReferences"] = nullptr;
  model::make_object_at(taken, {"metadata", "labels"})["hearth.dev/front"] = "e2b";
  world.patch_sandbox(world.names().at(0), taken);
  PoolWorld::start(world.sandboxes);
  world.settle();
  EXPECT_EQ(world.watched.creates, 2U);
  EXPECT_EQ(world.members().size(), 1U);
}

// P10
TEST_F(WarmPool, AServerThatRefusesIsAskedOnceAPass) {
  world_.client().create(kSandboxTemplates, template_named("py"));
  world_.client().create(kSandboxWarmPools, pool_named("pool", 50));
  world_.watched.before_create = [] { fail(Code::exhausted, "quota"); };
  EXPECT_THROW(world_.reconcile(), Error);
  EXPECT_EQ(world_.watched.creates, 1U);
  EXPECT_THROW(world_.reconcile(), Error) << "what failed is not waited for";
  world_.watched.before_create = [] {};
  world_.settle();
  EXPECT_EQ(count(), 50U);
}

TEST_F(WarmPool, APoolThatIsGoneIsForgotten) {
  make(pool_named("pool", 1));
  world_.client().remove(kSandboxWarmPools, "default", "pool");
  EXPECT_EQ(world_.reconcile(), reconcile::kWhenChanged);
  EXPECT_EQ(world_.watched.creates, 1U);
  EXPECT_EQ(world_.watched.removes, 0U) << "members are the garbage collector's";
}

TEST_F(WarmPool, SizesAreMeasured) {
  make(pool_named("pool", 3));
  world_.make_ready(world_.names()[0]);
  world_.set_condition(world_.names()[1], "Finished", "True", "PodFailed");
  world_.follow_all();
  metrics::Registry registry;
  world_.reconciler.collect(registry);
  const std::string text = registry.render();
  const auto line = [](std::string_view state, int value) {
    return "agent_sandbox_warmpool_size{namespace=\"default\",warmpool_name=\"pool\","
           "sandbox_template=\"py\",sandbox_status=\"" +
           std::string(state) + "\"} " + std::to_string(value) + "\n";
  };
  for (const auto& [state, value] :
       {std::pair{"ready", 1}, {"pending", 1}, {"failed", 1}, {"succeeded", 0}})
    EXPECT_NE(text.find(line(state, value)), std::string::npos) << text;
}

// P11
TEST(WarmPoolOptions, EvictionMarks) {
  for (const bool may_evict : {true, false}) {
    for (const char* own : {"", "false"}) {
      Json sandbox_template = template_named("py");
      if (*own != '\0')
        model::make_object_at(sandbox_template, {"spec", "podTemplate", "metadata",
                                                 "annotations"})[model::kSafeToEvictAnnotation] =
            own;
      const Json member =
          make_member(pool_named("pool", 1), blueprint_of(sandbox_template), may_evict);
      const std::string_view expected = *own != '\0' ? own : may_evict ? "true" : "";
      EXPECT_EQ(model::annotation_of(member.at_pointer("/spec/podTemplate"),
                                     model::kSafeToEvictAnnotation),
                expected);
    }
  }
}

TEST_F(WarmPool, ANameThatIsTakenIsReplacedByAnother) {
  std::atomic<int> left = 1;
  world_.watched.before_create = [&left] {
    if (left-- <= 0) return;
    throw model::StatusError({.code = 409, .reason = "AlreadyExists", .message = "taken"});
  };
  world_.client().create(kSandboxTemplates, template_named("py"));
  world_.client().create(kSandboxWarmPools, pool_named("pool", 1));
  world_.settle();
  EXPECT_EQ(count(), 1U);
  EXPECT_EQ(world_.watched.creates, 2U);
}

TEST_F(WarmPool, MembersBearTheTemplatesRulesOfAccess) {
  Json own = template_named("py");
  own.at("metadata").as_object()["annotations"] = {
      {model::kAccessAnnotation, "team-key"}, {model::kTrafficAnnotation, "token"}, {"mine", "x"}};
  world_.client().create(kSandboxTemplates, own);
  for (const char* names : {"", "id"}) {
    const std::string name = std::string("pool") + names;
    Json pool = pool_named(name, 1);
    pool.at("metadata").as_object()["annotations"] = {{model::kNamesAnnotation, names}};
    const Json member = make_member(pool, blueprint_of(own), false);
    EXPECT_EQ(model::annotation_of(member, model::kAccessAnnotation), "team-key");
    EXPECT_EQ(model::annotation_of(member, model::kTrafficAnnotation), "token");
    EXPECT_EQ(model::annotation_of(member, model::kTemplateRefAnnotation), "py");
    EXPECT_EQ(model::annotation_of(member, "mine"), "");
  }
  world_.client().create(kSandboxWarmPools, pool_named("pool", 1));
  world_.settle();
  ASSERT_EQ(count(), 1U);
  EXPECT_EQ(model::annotation_of(world_.members()[0], model::kAccessAnnotation), "team-key");

  // Those that are made from now on bear what it says now.
  own.at("metadata").as_object()["annotations"] = {{model::kAccessAnnotation, "open"}};
  world_.client().patch(kSandboxTemplates, "default", "py", client::PatchKind::merge, own);
  world_.patch_pool(R"({"spec":{"replicas":2}})");
  world_.settle();
  ASSERT_EQ(count(), 2U);
  std::multiset<std::string> said;
  for (const auto& each : world_.members())
    said.emplace(model::annotation_of(each, model::kAccessAnnotation));
  EXPECT_EQ(said, (std::multiset<std::string>{"open", "team-key"}));
}

// P12
TEST(WarmPoolOptions, RefillWaitsAfterADrop) {
  PoolWorld world({.replenish_delay = std::chrono::seconds(10)});
  world.client().create(kSandboxTemplates, template_named("py"));
  world.client().create(kSandboxWarmPools, pool_named("pool", 2));
  world.settle();
  ASSERT_EQ(world.members().size(), 2U) << "the first fill does not wait";
  world.claim(world.names()[0]);
  const auto next = world.reconcile();
  ASSERT_TRUE(next);
  EXPECT_EQ(*next, std::chrono::seconds(10));
  EXPECT_EQ(world.members().size(), 1U);
  EXPECT_EQ(model::number_at(world.status(), {"replicas"}), 1) << "the status does not wait";
  world.clock.advance(std::chrono::seconds(10));
  world.reconcile();
  EXPECT_EQ(world.members().size(), 2U);
}

// P13
TEST(WarmPoolOptions, RefillKeepsToItsRate) {
  PoolWorld world({.most_refill_rate = 3});
  world.client().create(kSandboxTemplates, template_named("py"));
  world.client().create(kSandboxWarmPools, pool_named("pool", 8));
  world.reconcile();
  EXPECT_EQ(world.members().size(), 3U);
  const auto next = world.reconcile();
  ASSERT_TRUE(next);
  EXPECT_LE(*next, std::chrono::milliseconds(334));
  world.clock.advance(std::chrono::seconds(1));
  world.settle();
  EXPECT_EQ(world.members().size(), 6U);
}

TEST(WarmPoolOptions, BatchesAreBounded) {
  PoolWorld world({.most_batch = 4});
  world.client().create(kSandboxTemplates, template_named("py"));
  world.client().create(kSandboxWarmPools, pool_named("pool", 6));
  world.reconcile();
  EXPECT_EQ(world.members().size(), 4U);
  world.reconcile();
  EXPECT_EQ(world.members().size(), 6U);
}

// A template of another namespace, as far as that lets others use it.
class BorrowedTemplate : public WarmPool {
 protected:
  void SetUp() override {
    world_.client().create(client::kNamespaces, json(R"({"apiVersion":"v1","kind":"Namespace",
        "metadata":{"name":"shared"}})"));
    Json lent = template_named("py", "lent:1");
    lent.at("metadata").as_object()["namespace"] = "shared";
    world_.client().create(kSandboxTemplates, lent);
    Json pool = pool_named("pool", 2, {}, "shared/py");
    pool.at("metadata").as_object()["annotations"] = json(R"({"hearth.dev/sandbox-names":"id"})");
    // Its own of that name is not meant.
    make(pool, "own:1");
  }
  void let_others(std::string_view value) {
    world_.client().patch(kSandboxTemplates, "shared", "py", client::PatchKind::merge,
                          {{"metadata", {{"labels", {{"hearth.dev/public", value}}}}}});
    ASSERT_TRUE(eventually([&] {
      const auto seen = world_.templates.find("shared", "py");
      return seen && model::label_of(*seen, "hearth.dev/public") == value;
    }));
    world_.settle();
  }
};

TEST_F(BorrowedTemplate, IsUsedWhileItIsPublic) {
  EXPECT_EQ(count(), 0U);
  let_others("true");
  ASSERT_EQ(count(), 2U);
  for (const Json& member : world_.members()) {
    const auto& containers =
        *model::array_at(member, {"spec", "podTemplate", "spec", "containers"});
    EXPECT_EQ(model::text_at(containers.at(0), {"image"}), "lent:1");
    EXPECT_EQ(model::label_of(member, model::kTemplateRefHashLabel), model::name_hash("py"));
    EXPECT_EQ(model::text_at(member, {"spec", "podTemplate", "metadata", "annotations",
                                      model::kDressAnnotation}),
              "py");
  }
  let_others("false");
  EXPECT_EQ(count(), 0U) << "nobody may use them any more";
}

}  // namespace
}  // namespace hearth::controllers
