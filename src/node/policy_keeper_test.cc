// Policies of pods as NetworkPolicies come and go, on the real API server.
#include "node/policy_keeper.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "base/error.h"
#include "client/kinds.h"
#include "model/front_door.h"
#include "node/fake_runtime_internal.h"
#include "node/pod_index.h"

namespace hearth::node {
namespace {

using namespace std::chrono_literals;
using apiserver::json;
using network::Mode;
using network::Policy;

const Policy kWorld{.mode = Mode::world};
const Policy kNothing{.mode = Mode::listed};

// What the runtime was told of each sandbox, and how often in all.
class Told {
 public:
  void add(const std::string& id, const Policy& policy) {
    const std::lock_guard lock(mutex_);
    last_[id] = policy;
    all_[id].push_back(policy);
    ++count_;
    news_.notify_all();
  }
  bool wait_for(const std::string& id, const Policy& policy) {
    std::unique_lock lock(mutex_);
    return news_.wait_for(lock, 10s, [&] {
      const auto found = last_.find(id);
      return found != last_.end() && found->second == policy;
    });
  }
  int count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  std::vector<Policy> all_of(const std::string& id) {
    const std::lock_guard lock(mutex_);
    return all_[id];
  }

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::map<std::string, Policy> last_;
  std::map<std::string, std::vector<Policy>> all_;
  int count_ = 0;
};

class PolicyKeeperTest : public testing::Test {
 protected:
  void SetUp() override {
    runtime_.on_policy = [this](const std::string& id, const Policy& policy) {
      if (is_away_) fail(Code::unavailable, "the runtime is away");
      if (id == "gone") fail(Code::not_found, "there is no '{}'", id);
      told_.add(id, policy);
    };
  }
  void TearDown() override {
    keeper_.reset();
    services_.stop();
    pods_.stop();
  }

  void start() {
    keeper_.emplace(client(), runtime_, pods_, services_);
    pods_.start();
    services_.start();
    keeper_->start();
  }

  client::Client& client() { return server_.client(); }

  // As keepers get it: the cache has it.
  network::Policy begin(std::string_view name, std::string_view app) {
    const Json pod = make_pod(name, app);
    while (!pods_.find("default", name)) std::this_thread::yield();
    return keeper_->first_policy(pod);
  }
  Json make_pod(std::string_view name, std::string_view app) {
    return client().create(client::kPods, json(fmt::format(R"({{"apiVersion":"v1","kind":"Pod",
        "metadata":{{"name":"{}","namespace":"default","labels":{{"app":"{}"}}}},
        "spec":{{"nodeName":"here","containers":[{{"name":"main","image":"host"}}]}}}})",
                                                           name, app)));
  }
  // It runs, in a sandbox of this name.
  void run(std::string_view pod, std::string_view address, std::string_view sandbox) {
    client().patch(client::kPods, "default", pod, client::PatchKind::merge,
                   json(fmt::format(R"({{"status":{{"phase":"Running","podIP":"{}",
        "containerStatuses":[{{"name":"main","image":"host","imageID":"","ready":true,
          "restartCount":0,"containerID":"hearth://{}","state":{{"running":{{}}}}}}]}}}})",
                                    address, sandbox)),
                   {.subresource = "status"});
  }
  void forbid_all(std::string_view name, std::string_view app) {
    client().create(
        client::kNetworkPolicies,
        json(fmt::format(R"({{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy",
        "metadata":{{"name":"{}","namespace":"default"}},
        "spec":{{"podSelector":{{"matchLabels":{{"app":"{}"}}}},"policyTypes":["Egress"]}}}})",
                         name, app)));
  }
  void allow_again(std::string_view name) {
    client().remove(client::kNetworkPolicies, "default", name);
  }

  apiserver::TestServer server_;
  FakeRuntime runtime_;
  std::atomic<bool> is_away_ = false;
  Told told_;
  client::WatchCache pods_{server_.client(), client::kPods};
  client::WatchCache services_{server_.client(), client::kServices};
  std::optional<PolicyKeeper> keeper_;
};

TEST_F(PolicyKeeperTest, APodBeginsAsThePoliciesOfThisMomentSay) {
  start();
  forbid_all("closed", "web");
  // No watch can have told of it yet, or it has: it makes no difference.
  EXPECT_EQ(begin("a", "web"), kNothing);
  EXPECT_EQ(begin("b", "other"), kWorld);
}

TEST_F(PolicyKeeperTest, ChangesFollowAndWhatIsSoAlreadyIsNotSaid) {
  start();
  EXPECT_EQ(begin("a", "web"), kWorld);
  EXPECT_EQ(begin("b", "other"), kWorld);
  run("a", "10.77.0.2", "box-a");
  run("b", "10.77.0.3", "box-b");
  forbid_all("closed", "web");
  EXPECT_TRUE(told_.wait_for("box-a", kNothing));
  EXPECT_EQ(told_.count(), 1) << "box-b is as it was made";
  client().patch(client::kPods, "default", "b", client::PatchKind::merge,
                 json(R"({"metadata":{"labels":{"app":"web"}}})"));
  EXPECT_TRUE(told_.wait_for("box-b", kNothing)) << "labels are what policies go by";
  allow_again("closed");
  EXPECT_TRUE(told_.wait_for("box-a", kWorld));
  EXPECT_TRUE(told_.wait_for("box-b", kWorld));
}

TEST_F(PolicyKeeperTest, WhatIsFoundIsToldAnew) {
  make_pod("a", "web");
  run("a", "10.77.0.2", "box-a");
  make_pod("b", "web");
  run("b", "10.77.0.3", "gone");
  forbid_all("closed", "web");
  start();  // as after an engine that was killed: nobody knows what is in force
  EXPECT_TRUE(told_.wait_for("box-a", kNothing));
}

TEST_F(PolicyKeeperTest, ARuntimeThatRefusesIsAskedAgain) {
  start();
  std::mutex mutex;
  int refusals = 1;
  runtime_.on_policy = [&](const std::string& id, const Policy& policy) {
    {
      const std::lock_guard lock(mutex);
      if (refusals-- > 0) fail(Code::unavailable, "the runtime is away");
    }
    told_.add(id, policy);
  };
  make_pod("a", "web");
  run("a", "10.77.0.2", "box-a");
  EXPECT_TRUE(told_.wait_for("box-a", kWorld));
}

class NamedHostsOfPods : public PolicyKeeperTest {
 protected:
  static constexpr std::uint32_t kPod = 0x0a4d0002;
  static constexpr std::string_view kWish = R"({"allow":["a.example"],"deny":["0.0.0.0/0"]})";

  // A pod that runs, as the caches have it.
  client::Object running() {
    start();
    begin("a", "web");
    run("a", "10.77.0.2", "box-a");
    client::Object pod;
    while (!(pod = pods_.find("default", "a")) || address_of_pod(*pod) == 0)
      std::this_thread::yield();
    return pod;
  }
  static Json wishing(const client::Object& pod, std::string_view wish = kWish) {
    Json wanted = *pod;
    model::make_object_at(wanted, {"metadata", "annotations"})[model::kEgressAnnotation] = wish;
    return wanted;
  }
  static Policy closed_but(const std::vector<network::Rule>& allow) {
    return {.mode = Mode::world, .allow = allow, .deny = {network::parse_rule("0.0.0.0/0")}};
  }
  void admit(const std::string& name, std::uint32_t address) {
    keeper_->admit(kPod, name, std::span(&address, 1));
  }
};

TEST_F(NamedHostsOfPods, AnAnswerOpensWhatItSays) {
  const Json pod = wishing(running());
  keeper_->enforce(pod, "box-a");
  EXPECT_TRUE(told_.wait_for("box-a", closed_but({})));
  EXPECT_EQ(keeper_->judge(kPod, "a.example"), NameRuling::named);
  EXPECT_EQ(keeper_->judge(kPod, "b.example"), NameRuling::refused);

  // The watch knows nothing of the rules yet, and loosens nothing.
  admit("a.example", 0x09090909);
  EXPECT_TRUE(told_.wait_for("box-a", closed_but({network::parse_rule("9.9.9.9")})));
  const int count = told_.count();
  admit("a.example", 0x09090909);
  EXPECT_EQ(told_.count(), count) << "it was told already";

  // A NetworkPolicy that comes narrows, and what was answered stays.
  forbid_all("closed", "web");
  EXPECT_TRUE(told_.wait_for("box-a", kNothing));
}

TEST_F(NamedHostsOfPods, AnEngineThatComesBackKnowsTheRules) {
  make_pod("a", "web");
  run("a", "10.77.0.2", "box-a");
  client().patch(client::kPods, "default", "a", client::PatchKind::merge,
                 json(fmt::format(R"({{"metadata":{{"annotations":{{"{}":{}}}}}}})",
                                  model::kEgressAnnotation, model::to_text(Json(kWish)))));
  start();
  EXPECT_TRUE(told_.wait_for("box-a", closed_but({})));
  EXPECT_EQ(keeper_->judge(kPod, "b.example"), NameRuling::refused);
  admit("a.example", 0x09090909);
  EXPECT_TRUE(told_.wait_for("box-a", closed_but({network::parse_rule("9.9.9.9")})));
  client().remove(client::kPods, "default", "a", {.grace_seconds = 0});
  while (keeper_->judge(kPod, "b.example") != NameRuling::free) std::this_thread::yield();
}

TEST_F(NamedHostsOfPods, WhatTheRuntimeDidNotTakeIsTriedAgain) {
  const Json pod = wishing(running());
  keeper_->enforce(pod, "box-a");
  is_away_ = true;
  EXPECT_THROW(admit("a.example", 0x09090909), Error);
  is_away_ = false;
  admit("a.example", 0x09090909);
  EXPECT_TRUE(told_.wait_for("box-a", closed_but({network::parse_rule("9.9.9.9")})));
}

TEST_F(NamedHostsOfPods, APodThatAsksOthersForNamesIsRefused) {
  Json pod = wishing(running());
  model::make_object_at(pod, {"spec"})["dnsPolicy"] = "None";
  try {
    keeper_->enforce(pod, "box-a");
    ADD_FAILURE() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
  }
  EXPECT_EQ(keeper_->judge(kPod, "b.example"), NameRuling::free);
}

// Pods that hear of their Sandbox's words later than whoever was told that they hold.
class EgressOfSandboxes : public NamedHostsOfPods {
 protected:
  static constexpr std::string_view kFirst = R"({"allow":[],"deny":["1.1.1.1"]})";
  static constexpr std::string_view kSecond = R"({"allow":[],"deny":["2.2.2.2"]})";

  void SetUp() override {
    NamedHostsOfPods::SetUp();
    start();
    const Json sandbox = client().create(client::kSandboxes, json(R"({
        "apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",
        "metadata":{"name":"a","namespace":"default"},
        "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"host"}]}}}})"));
    make_pod("a", "web");
    client().patch(client::kPods, "default", "a", client::PatchKind::merge,
                   {{"metadata", {{"ownerReferences", {model::controller_reference(sandbox)}}}}});
    make_pod("z", "web");
    run("a", "10.77.0.2", "box-a");
    run("z", "10.77.0.3", "box-z");
    ASSERT_TRUE(told_.wait_for("box-a", kWorld));
    ASSERT_TRUE(told_.wait_for("box-z", kWorld));
  }
  void say(const client::ResourceId& kind, std::string_view name, std::string_view wish) {
    client().patch(kind, "default", name, client::PatchKind::merge,
                   {{"metadata", {{"annotations", {{model::kEgressAnnotation, wish}}}}}});
  }
  // As the E2B API does it.
  void put(std::string_view wish) {
    say(client::kSandboxes, "a", wish);
    keeper_->enforce(wishing(pods_.find("default", "a"), wish), "box-a");
  }
  // Everything that was said of the pod before has been looked at: the next in line was.
  void catch_up() {
    const std::string mark = fmt::format("9.9.9.{}", ++marks_);
    say(client::kPods, "z", R"({"allow":[],"deny":[")" + mark + R"("]})");
    ASSERT_TRUE(told_.wait_for("box-z", denying(mark)));
  }
  static Policy denying(std::string_view address) {
    return {.mode = Mode::world, .deny = {network::parse_rule(std::string(address))}};
  }

 private:
  int marks_ = 0;
};

TEST_F(EgressOfSandboxes, ALateWordPutsNothingOlderInForce) {
  put(kFirst);
  put(kSecond);
  const std::size_t before = told_.all_of("box-a").size();
  ASSERT_EQ(told_.all_of("box-a").back(), denying("2.2.2.2"));
  say(client::kPods, "a", kFirst);
  catch_up();
  say(client::kPods, "a", kSecond);
  catch_up();
  const std::vector<Policy> all = told_.all_of("box-a");
  EXPECT_EQ(std::ranges::count(all.begin() + static_cast<std::ptrdiff_t>(before), all.end(),
                               denying("1.1.1.1")),
            0);
  EXPECT_EQ(all.back(), denying("2.2.2.2"));
}

TEST_F(EgressOfSandboxes, ALateWordOfTheWayItWasIsNoNewsEither) {
  put(kFirst);
  const auto before = std::ranges::count(told_.all_of("box-a"), kWorld);
  // Somebody looks at all pods before the pod has heard of it.
  forbid_all("closed", "web");
  ASSERT_TRUE(told_.wait_for("box-a", kNothing));
  allow_again("closed");
  ASSERT_TRUE(told_.wait_for("box-a", denying("1.1.1.1")));
  EXPECT_EQ(std::ranges::count(told_.all_of("box-a"), kWorld), before);
}

TEST_F(EgressOfSandboxes, ALateWordBringsNoOlderNames) {
  put(R"({"allow":["b.example"],"deny":["0.0.0.0/0"]})");
  put(kWish);
  say(client::kPods, "a", R"({"allow":["b.example"],"deny":["0.0.0.0/0"]})");
  catch_up();
  EXPECT_EQ(keeper_->judge(kPod, "a.example"), NameRuling::named);
  EXPECT_EQ(keeper_->judge(kPod, "b.example"), NameRuling::refused);
}

TEST_F(EgressOfSandboxes, WhatTheSandboxSaysNoMoreHoldsNoMore) {
  put(kFirst);
  say(client::kPods, "a", kFirst);
  catch_up();
  client().patch(client::kSandboxes, "default", "a", client::PatchKind::merge,
                 {{"metadata", {{"annotations", {{model::kEgressAnnotation, nullptr}}}}}});
  keeper_->enforce(wishing(pods_.find("default", "a"), R"({"allow":[],"deny":[]})"), "box-a");
  EXPECT_EQ(told_.all_of("box-a").back(), kWorld);
  // The pod still says otherwise.
  client().patch(client::kPods, "default", "a", client::PatchKind::merge,
                 json(R"({"metadata":{"labels":{"app":"other"}}})"));
  catch_up();
  EXPECT_EQ(told_.all_of("box-a").back(), kWorld);
}

}  // namespace
}  // namespace hearth::node
