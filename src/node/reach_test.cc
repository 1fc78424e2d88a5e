#include "node/reach.h"

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "model/front_door.h"
#include "node/fake_sandboxes_internal.h"
#include "node/pod_policy.h"

namespace hearth::node {
namespace {

using model::Json;

// A pod with one container that runs, in this sandbox.
Json pod_in(std::string_view sandbox, std::string_view node = "here") {
  Json pod = apiserver::json(R"({"metadata":{"name":"p","namespace":"n","uid":"u"},
      "spec":{"containers":[{"name":"c"}]},
      "status":{"containerStatuses":[{"name":"c","state":{"running":{}}}]}})");
  pod.at("spec").as_object()["nodeName"] = node;
  pod.at_pointer("/status/containerStatuses/0").as_object()["containerID"] =
      "hearth://" + std::string(sandbox);
  return pod;
}

class ReachTest : public testing::Test {
 protected:
  ReachTest() { make("s-0"); }

  void make(const std::string& id) {
    runtime::SandboxSpec spec;
    spec.id = id;
    spec.network = network::Policy{.mode = network::Mode::world};
    runtime_.create(spec);
    runtime_.take_calls();
  }
  std::string refusal(const Json& pod, std::uint16_t port = FakeSandboxes::kOpenPort) {
    try {
      reach_.connect(pod, port);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::unavailable) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "nothing was refused";
    return {};
  }

  using Calls = std::vector<std::string>;
  static void SetUpTestSuite() { server_ = std::make_unique<apiserver::TestServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  static inline std::unique_ptr<apiserver::TestServer> server_;
  FakeSandboxes runtime_;
  NodeReach reach_{server_->client(), runtime_, "here",
                   [this](const Json& pod, const std::string& sandbox) {
                     runtime_.set_policy(sandbox, pod_policy(pod));
                   }};
  const Json pod_ = pod_in("s-0");
};

TEST_F(ReachTest, IsForPodsThatRunHere) {
  EXPECT_TRUE(reach_.is_here(pod_));
  EXPECT_FALSE(reach_.is_here(pod_in("s-0", "elsewhere")));
  EXPECT_FALSE(reach_.is_here(apiserver::json(R"({"spec":{"nodeName":"here"}})")));
  EXPECT_NE(refusal(pod_in("s-0", "elsewhere")).find("does not run here"), std::string::npos);
}

TEST_F(ReachTest, TheSecondConnectionTakesTheSameDoor) {
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(reach_.connect(pod_, FakeSandboxes::kOpenPort)) << "a descriptor";
  EXPECT_EQ(runtime_.take_calls(), Calls{"connect s-0"});
}

TEST_F(ReachTest, ARefusalIsAnAnswer) {
  EXPECT_NE(refusal(pod_, 81).find("refused"), std::string::npos);
  EXPECT_NE(refusal(pod_, 81).find("refused"), std::string::npos);
  EXPECT_TRUE(reach_.connect(pod_, FakeSandboxes::kOpenPort));
  EXPECT_EQ(runtime_.take_calls(), Calls{"connect s-0"});
}

TEST_F(ReachTest, ADoorThatLeadsNowhereIsTriedAnew) {
  reach_.connect(pod_, FakeSandboxes::kOpenPort);
  runtime_.destroy("s-0");
  make("s-0");
  EXPECT_TRUE(reach_.connect(pod_, FakeSandboxes::kOpenPort));
  EXPECT_EQ(runtime_.take_calls(), Calls{"connect s-0"});
  runtime_.destroy("s-0");
  EXPECT_THROW(reach_.connect(pod_, FakeSandboxes::kOpenPort), Error);
}

TEST_F(ReachTest, ANewLifeHasDoorsOfItsOwn) {
  reach_.connect(pod_, FakeSandboxes::kOpenPort);
  make("s-1");
  EXPECT_TRUE(reach_.connect(pod_in("s-1"), FakeSandboxes::kOpenPort));
  EXPECT_EQ(runtime_.take_calls(), Calls{"connect s-1"});
  reach_.forget(pod_);
  EXPECT_TRUE(reach_.connect(pod_in("s-1"), FakeSandboxes::kOpenPort));
  EXPECT_EQ(runtime_.take_calls(), Calls{"connect s-1"});
}

TEST_F(ReachTest, EgressIsThatOfTheNextLifeToo) {
  const pool::Egress egress{.allow = {"1.1.1.1"}, .deny = {"0.0.0.0/0"}};
  reach_.set_egress(pod_, egress);
  Json annotated = pod_;
  model::make_object_at(annotated, {"metadata", "annotations"})[model::kEgressAnnotation] =
      egress_text(egress);
  EXPECT_EQ(runtime_.policy_of("s-0"), pod_policy(annotated));
  EXPECT_EQ(runtime_.policy_of("s-0").deny.size(), 1U);
  reach_.set_egress(annotated, {});
  EXPECT_EQ(runtime_.policy_of("s-0"), pod_policy(pod_)) << "what is not said any more is cleared";
}

TEST_F(ReachTest, EgressThatMakesNoSenseChangesNothing) {
  for (const char* text : {"example.test", "10.0.0.0/33", "", "1.2.3"}) {
    try {
      reach_.set_egress(pod_, {.allow = {}, .deny = {text}});
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid);
    }
  }
  EXPECT_EQ(runtime_.policy_of("s-0"), pod_policy(pod_));
}

TEST_F(ReachTest, UsageAndImages) {
  const pool::PodUsage usage = reach_.usage(pod_);
  EXPECT_EQ(usage.cpu_microseconds, 7U);
  EXPECT_EQ(usage.memory_bytes, 8U);
  EXPECT_EQ(usage.disk_bytes, 9U);
  EXPECT_EQ(usage.memory_limit_bytes, runtime::Limits().memory_bytes);
  EXPECT_EQ(usage.disk_limit_bytes, runtime::Limits().disk_bytes);
  EXPECT_EQ(usage.cpu_millis, 2000U);
  reach_.commit(pod_, "snap:1");
  EXPECT_EQ(runtime_.take_calls(), Calls{"commit snap:1"});
  EXPECT_FALSE(reach_.remove_image("none:1"));
  EXPECT_TRUE(reach_.find_images("snap").empty());
  EXPECT_THROW(reach_.usage(pod_in("gone")), Error);
}

}  // namespace
}  // namespace hearth::node
