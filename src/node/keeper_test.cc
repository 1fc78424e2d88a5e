// Keepers on a real API server, with sandboxes that are none.
#include "node/keeper.h"

#include <algorithm>
#include <atomic>

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/kinds.h"
#include "model/agent_sandbox.h"
#include "model/container_id.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "node/fake_sandboxes_internal.h"
#include "node/pod_status.h"

namespace hearth::node {
namespace {

class NoImages final : public ImageSource {
 public:
  std::vector<image::Image> list() override { return {}; }
  image::Image pull(const registry::Reference&, const registry::DockerConfig&) override {
    fail(Code::not_found, "there are none");
  }
};

class KeeperTest : public testing::Test {
 protected:
  using Calls = std::vector<std::string>;

  KeeperTest() {
    server_.client().create(client::kPods, apiserver::json(R"({
        "apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},
        "spec":{"nodeName":"here","terminationGracePeriodSeconds":5,
                "automountServiceAccountToken":false,
                "containers":[{"name":"a","image":"host","command":["sleep"]},
                              {"name":"b","image":"host","command":["sleep"]}]}})"));
    begin();
    step();
    EXPECT_EQ(condition("Ready"), "True");
    for (const std::size_t index : {0U, 1U}) ids_.push_back(sandbox_of(index));
    runtime_.take_calls();
  }
  void TearDown() override {
    keeper_.reset();
    downloads_.stop();
    talks_.stop();
    ends_.stop();
  }

  Json pod() { return server_.client().get(client::kPods, "default", "p"); }
  Json container(std::size_t index) { return pod().at("status").at("containerStatuses").at(index); }
  std::string sandbox_of(std::size_t index) {
    return std::string(
        model::sandbox_of_container(model::text_at(container(index), {"containerID"})));
  }
  std::int64_t restarts(std::size_t index) {
    return model::number_at(container(index), {"restartCount"}).value_or(-1);
  }
  // As an agent does that has just started.
  void begin() { keeper_.emplace(tools_, pod(), runtime_.list()); }
  reconcile::Next step() { return keeper_->step(std::make_shared<const Json>(pod())); }
  void annotate(const Json& value) {
    server_.client().patch(
        client::kPods, "default", "p", client::PatchKind::merge,
        model::JsonObject{
            {"metadata",
             model::JsonObject{
                 {"annotations", model::JsonObject{{model::kPauseAnnotation, value}}}}}});
  }
  void pause() {
    annotate("memory");
    step();
  }
  void resume() {
    annotate(nullptr);
    step();
  }
  // When all of it has ended, and not before.
  bool fails_for(std::string_view reason) {
    return apiserver::eventually([&] {
      step();
      const Json now = pod();
      const bool is_running = model::find(container(0), {"state", "running"}) != nullptr ||
                              model::find(container(1), {"state", "running"}) != nullptr;
      EXPECT_EQ(model::text_at(now, {"status", "phase"}), is_running ? "Running" : "Failed");
      return !is_running && model::text_at(now, {"status", "reason"}) == reason;
    });
  }
  std::string condition(std::string_view type, std::string_view field = "status") {
    const Json now = pod();
    const Json* found = model::find_condition(now, type);
    return found ? std::string(model::text_at(*found, {field})) : "none";
  }
  // Of pods, with this reason.
  std::size_t count_events(std::string_view reason) {
    events_.flush();
    const std::vector<Json> all = server_.client().list(client::kEvents, {.ns = "default"}).items;
    return static_cast<std::size_t>(std::ranges::count_if(
        all, [&](const Json& event) { return model::text_at(event, {"reason"}) == reason; }));
  }
  Calls both(const std::string& call) const { return {call + " " + ids_[0], call + " " + ids_[1]}; }

  apiserver::TestServer server_;
  FakeSandboxes runtime_;
  ManualClock clock_;
  NoImages source_;
  Images images_{server_.client(), source_, clock_};
  Planner planner_{server_.client(), {.node_name = "here", .host_address = "192.0.2.1"}};
  Prober prober_{runtime_};
  Errands downloads_{1};
  Errands talks_{1};
  Ends ends_;
  reconcile::EventRecorder events_{server_.client(), clock_, {.controller = "t"}};
  Tools tools_{.client = server_.client(),
               .runtime = runtime_,
               .planner = planner_,
               .images = images_,
               .prober = prober_,
               .downloads = downloads_,
               .talks = talks_,
               .ends = ends_,
               .events = events_,
               .clock = clock_,
               .host_address = "192.0.2.1",
               .wake = [this](const model::Key&) {
                 is_awake_ = true;
                 is_awake_.notify_all();
               }};
  std::atomic<bool> is_awake_ = false;
  std::optional<Keeper> keeper_;
  std::vector<std::string> ids_;
};

// Whoever dressed it knows by that that it has to do so again.
TEST_F(KeeperTest, AContainerWhoseSandboxDiedHasAnotherAtOnce) {
  runtime_.destroy(ids_[0]);
  is_awake_.wait(false);
  step();
  EXPECT_NE(sandbox_of(0), ids_[0]);
  EXPECT_EQ(sandbox_of(1), ids_[1]);
  EXPECT_EQ(restarts(0), 1);
  EXPECT_NE(model::find(container(0), {"state", "running"}), nullptr);
  EXPECT_EQ(condition("Ready"), "True");
}

TEST_F(KeeperTest, EverythingStandsStillAndGoesOn) {
  EXPECT_EQ(condition(model::kPausedCondition), "none");
  pause();
  EXPECT_EQ(runtime_.take_calls(), both("pause"));
  EXPECT_EQ(condition(model::kPausedCondition), "True");
  EXPECT_EQ(condition("Ready"), "False");
  EXPECT_EQ(condition("Ready", "reason"), "Paused");
  EXPECT_EQ(condition("ContainersReady", "reason"), "Paused");
  EXPECT_EQ(model::text_at(pod(), {"status", "phase"}), "Running");
  EXPECT_FALSE(model::is_true_at(container(0), {"ready"}));
  EXPECT_NE(model::find(container(0), {"state", "running"}), nullptr);
  step();
  EXPECT_EQ(runtime_.take_calls(), Calls{}) << "once is enough";

  resume();
  EXPECT_EQ(runtime_.take_calls(), both("resume"));
  EXPECT_EQ(condition(model::kPausedCondition), "False");
  EXPECT_EQ(condition("Ready"), "True");
  EXPECT_EQ(condition("ContainersReady"), "True");
  EXPECT_EQ(restarts(0), 0);
  step();
  EXPECT_EQ(runtime_.take_calls(), Calls{});
}

TEST_F(KeeperTest, OtherWordsMeanNothing) {
  annotate("files");
  step();
  EXPECT_EQ(runtime_.take_calls(), Calls{});
  EXPECT_EQ(condition("Ready"), "True");
}

TEST_F(KeeperTest, ANewAgentLeavesItAsItIs) {
  pause();
  runtime_.take_calls();
  begin();
  step();
  EXPECT_EQ(runtime_.take_calls(), Calls{}) << "it can be asked nothing";
  EXPECT_EQ(condition(model::kPausedCondition), "True");

  resume();
  EXPECT_EQ(runtime_.take_calls(), (Calls{"resume " + ids_[0], "connect " + ids_[0],
                                          "resume " + ids_[1], "connect " + ids_[1]}));
  EXPECT_EQ(condition("Ready"), "True");
  EXPECT_EQ(restarts(1), 0);
}

TEST_F(KeeperTest, OneThatWasResumedBehindItsBackIsToldAgainByANewAgent) {
  annotate("memory");
  begin();
  step();
  EXPECT_EQ(runtime_.state_of(ids_[0]), runtime::State::paused);
  annotate(nullptr);
  begin();
  step();
  EXPECT_EQ(runtime_.state_of(ids_[0]), runtime::State::running);
  EXPECT_EQ(condition("Ready"), "True");
}

TEST_F(KeeperTest, OneThatVanishedMeanwhileIsStartedWhenItGoesOn) {
  pause();
  runtime_.destroy(ids_[0]);
  runtime_.take_calls();
  step();
  EXPECT_EQ(runtime_.take_calls(), Calls{}) << "nothing is started while it stands still";
  resume();
  step();
  EXPECT_EQ(restarts(0), 1);
  EXPECT_EQ(restarts(1), 0);
  EXPECT_NE(sandbox_of(0), ids_[0]);
}

TEST_F(KeeperTest, ItsEndComesAsAlways) {
  pause();
  runtime_.take_calls();
  server_.client().remove(client::kPods, "default", "p");
  step();
  EXPECT_EQ(runtime_.take_calls(), both("resume")) << "to hear that it is to end";
  clock_.advance(std::chrono::seconds(6));
  step();
  EXPECT_TRUE(runtime_.list().empty());
  EXPECT_FALSE(server_.client().find(client::kPods, "default", "p"));
}

TEST_F(KeeperTest, ItsEndIsToldOf) {
  server_.client().remove(client::kPods, "default", "p");
  step();
  EXPECT_EQ(count_events("Killing"), 2U);
}

TEST_F(KeeperTest, TheEndOfAPoolsMemberIsNoNews) {
  server_.client().patch(
      client::kPods, "default", "p", client::PatchKind::merge,
      model::JsonObject{
          {"metadata",
           model::JsonObject{{"labels", model::JsonObject{{model::kPoolLabel, "91dd7983"}}}}}});
  server_.client().remove(client::kPods, "default", "p");
  step();
  EXPECT_EQ(count_events("Killing"), 0U);
  EXPECT_EQ(count_events("Started"), 2U) << "whoever gets it reads of its beginning";
}

TEST_F(KeeperTest, WithoutGraceItIsGoneAtOnce) {
  pause();
  runtime_.take_calls();
  server_.client().remove(client::kPods, "default", "p", {.grace_seconds = 1});
  clock_.advance(std::chrono::seconds(2));
  begin();  // which knows nothing but what it finds
  clock_.advance(std::chrono::seconds(2));
  step();
  clock_.advance(std::chrono::seconds(2));
  step();
  EXPECT_TRUE(runtime_.list().empty());
}

TEST_F(KeeperTest, ADeadlineIsNoLessOne) {
  server_.client().patch(client::kPods, "default", "p", client::PatchKind::merge,
                         apiserver::json(R"({"spec":{"activeDeadlineSeconds":60}})"));
  pause();
  runtime_.take_calls();
  clock_.advance(std::chrono::seconds(61));
  step();
  EXPECT_EQ(runtime_.take_calls(), both("resume"));
  EXPECT_TRUE(fails_for("DeadlineExceeded"));
}

TEST_F(KeeperTest, WhoIsEvictedLeavesNothing) {
  keeper_->evict("there is no room");
  EXPECT_TRUE(fails_for("Evicted"));
  EXPECT_EQ(model::text_at(pod(), {"status", "message"}), "there is no room");
  EXPECT_EQ(condition("DisruptionTarget", "reason"), "TerminationByKubelet");
  EXPECT_TRUE(runtime_.list().empty());
  begin();
  step();
  EXPECT_TRUE(runtime_.list().empty()) << "it stays so";
}

TEST_F(KeeperTest, AnEphemeralContainerJoinsWhileThePodRuns) {
  server_.client().patch(
      client::kPods, "default", "p", client::PatchKind::strategic,
      apiserver::json(
          R"({"spec":{"ephemeralContainers":[{"name":"e","image":"host","command":["sleep"]}]}})"),
      {.subresource = "ephemeralcontainers"});
  step();

  const Json now = pod();
  const auto* late = model::array_at(now, {"status", "ephemeralContainerStatuses"});
  ASSERT_NE(late, nullptr);
  EXPECT_NE(model::find(late->at(0), {"state", "running"}), nullptr);
  EXPECT_EQ(container(0).at("ready").as_bool(), true);
  EXPECT_EQ(condition("Ready"), "True");
  EXPECT_EQ(runtime_.list().size(), 3U);
  EXPECT_EQ(sandbox_of(0), ids_[0]);

  // Whoever comes after this one knows it from the status.
  begin();
  step();
  EXPECT_EQ(runtime_.list().size(), 3U);
}

TEST_F(KeeperTest, APodThatIsNotTakenSaysWhy) {
  server_.client().create(client::kPods, apiserver::json(R"({
      "apiVersion":"v1","kind":"Pod","metadata":{"name":"q","namespace":"default"},
      "spec":{"nodeName":"here","automountServiceAccountToken":false,
              "securityContext":{"sysctls":[{"name":"kernel.msgmax","value":"1"}]},
              "containers":[{"name":"a","image":"host","command":["sleep"]}]}})"));
  const auto refused =
      std::make_shared<const Json>(server_.client().get(client::kPods, "default", "q"));
  Keeper keeper(tools_, *refused, {});
  keeper.step(refused);

  const Json now = server_.client().get(client::kPods, "default", "q");
  const Json& status = now.at("status");
  EXPECT_EQ(model::text_at(status, {"phase"}), "Failed");
  EXPECT_EQ(model::text_at(status, {"reason"}), "SysctlForbidden");
  EXPECT_EQ(model::text_at(status, {"message"}),
            "Pod was rejected: forbidden sysctl: \"kernel.msgmax\" not allowlisted");
  EXPECT_EQ(model::find(status, {"containerStatuses"}), nullptr);
}

}  // namespace
}  // namespace hearth::node
