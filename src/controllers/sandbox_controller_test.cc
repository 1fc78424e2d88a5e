// The Sandbox controller as it runs: watches, workers, and a node that makes pods run.
#include <condition_variable>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "controllers/sandbox_metrics.h"
#include "controllers/sandbox_testing_internal.h"
#include "reconcile/controller.h"
#include "reconcile/manager.h"

namespace hearth::controllers {
namespace {

using namespace std::chrono_literals;

class SandboxControllerTest : public testing::Test {
 protected:
  static constexpr int kCount = 10;

  SandboxControllerTest() {
    // A node: every new pod runs at once.
    node_.add_handlers({.on_add = [this](const client::Object& pod) { run(*pod); }});
    watcher_.add_handlers(
        {.on_update = [this](const client::Object&, const client::Object& now) { note(*now); }});
    for (client::WatchCache* cache : {&node_, &watcher_}) {
      cache->start();
      EXPECT_TRUE(cache->wait_synced(20s));
    }
    manager_.start_caches();
    manager_.start_controllers();
  }
  void TearDown() override {
    manager_.stop();
    for (client::WatchCache* cache : {&node_, &watcher_}) cache->stop();
  }

  void make_sandboxes() {
    for (int each = 0; each < kCount; ++each)
      server_.client().create(
          client::kSandboxes,
          yaml(
              fmt::format("{{apiVersion: agents.x-k8s.io/v1beta1, kind: Sandbox, metadata: {{name: "
                          "s{}, namespace: default}}, spec: {{podTemplate: {{spec: {{containers: "
                          "[{{name: m, image: i}}]}}}}}}}}",
                          each)));
  }
  bool wait_ready(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] { return ready_.size() == count; });
  }

  void run(const Json& pod) {
    server_.client().patch(
        client::kPods, "default", model::name_of(pod), client::PatchKind::merge,
        yaml("{status: {phase: Running, podIPs: [{ip: 10.0.0.5}], conditions: [{type: "
             "PodScheduled, status: 'True'}, {type: Ready, status: 'True'}]}}"),
        {.subresource = "status"});
  }
  void note(const Json& sandbox) {
    const std::lock_guard lock(mutex_);
    if (!model::is_condition_true(sandbox, "Ready")) {
      ready_.erase(std::string(model::name_of(sandbox)));
      return;
    }
    // Whoever sees it ready can find its pod.
    if (model::annotation_of(sandbox, model::kPodNameAnnotation).empty())
      ADD_FAILURE() << "ready without a pod's name";
    ready_.insert(std::string(model::name_of(sandbox)));
    changed_.notify_all();
  }

  apiserver::TestServer server_;
  ScriptedClient client_{server_.client()};
  client::WatchCache node_{server_.client(), client::kPods};
  client::WatchCache watcher_{server_.client(), client::kSandboxes};
  SystemClock clock_;
  metrics::Registry metrics_;
  reconcile::EventRecorder events_{server_.client(), clock_, {.controller = "sandbox-controller"}};
  // Longer than any pod here needs: what is counted does not depend on the machine.
  const Options options_{.sandbox_workers = 4, .transitional_status_window = 1s};
  reconcile::Manager manager_{server_.client()};
  SandboxReconciler reconciler_{client_,  sandbox_caches(manager_), clock_, events_, options_,
                                &metrics_};
  reconcile::Controller& controller_ = reconciler_.add_to(manager_);

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::set<std::string> ready_;
};

TEST_F(SandboxControllerTest, SandboxesBecomeReadyWithThreeWritesEach) {
  make_sandboxes();
  ASSERT_TRUE(wait_ready(kCount));
  manager_.stop();

  std::map<std::string, int> counts;
  for (const std::string& each : client_.take_writes()) ++counts[each];
  const std::map<std::string, int> expected = {
      {"create pods", kCount}, {"patch sandboxes", kCount}, {"patch sandboxes/status", kCount}};
  EXPECT_EQ(counts, expected);
  EXPECT_LE(controller_.counts().succeeded, 4u * kCount);  // created, pod made, pod running, window
}

TEST_F(SandboxControllerTest, APodThatIsDeletedComesBack) {
  make_sandboxes();
  ASSERT_TRUE(wait_ready(kCount));
  const std::string uid(model::uid_of(server_.client().get(client::kPods, "default", "s3")));

  server_.client().remove(client::kPods, "default", "s3");

  const auto until = std::chrono::steady_clock::now() + 20s;
  for (std::string now = uid; now == uid || now.empty();) {
    ASSERT_LT(std::chrono::steady_clock::now(), until);
    const auto pod = server_.client().find(client::kPods, "default", "s3");
    now = pod ? std::string(model::uid_of(*pod)) : std::string();
    std::this_thread::yield();
  }
  EXPECT_TRUE(wait_ready(kCount));
}

TEST_F(SandboxControllerTest, AreCountedWhenSomebodyAsks) {
  make_sandboxes();
  ASSERT_TRUE(wait_ready(kCount));
  const auto is_told = [&] {
    return metrics_.render().find(
               "agent_sandboxes{namespace=\"default\",ready_condition=\"true\",expired=\"false\","
               "launch_type=\"cold\",sandbox_template=\"unknown\",owned_by=\"None\","
               "created_by=\"unknown\"} 10") != std::string::npos;
  };
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (!is_told()) {
    ASSERT_LT(std::chrono::steady_clock::now(), until) << metrics_.render();
    std::this_thread::yield();
  }
}

TEST(CreationLatency, IsTheTimeToReady) {
  metrics::Registry metrics;
  const Json ready = yaml(
      "{metadata: {namespace: a, creationTimestamp: '2026-01-02T03:04:05Z'}, status: {conditions: "
      "[{type: Ready, status: 'True', lastTransitionTime: '2026-01-02T03:04:07Z'}]}}");
  observe_creation_latency(metrics, ready, "cold", "t");
  observe_creation_latency(metrics, yaml("{metadata: {namespace: a}}"), "cold", "t");

  const std::string text = metrics.render();
  EXPECT_NE(text.find("agent_sandbox_creation_latency_ms_sum{namespace=\"a\",launch_type=\"cold\","
                      "sandbox_template=\"t\"} 2000"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("_count{namespace=\"a\",launch_type=\"cold\",sandbox_template=\"t\"} 1"),
            std::string::npos);
}

}  // namespace
}  // namespace hearth::controllers
