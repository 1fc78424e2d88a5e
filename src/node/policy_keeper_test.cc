// Policies of pods as NetworkPolicies come and go, on the real API server.
#include "node/policy_keeper.h"

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

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::map<std::string, Policy> last_;
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

}  // namespace
}  // namespace hearth::node
