// What is counted of the lives of Sandboxes, on a real API server.
#include "controllers/sandbox_testing_internal.h"

namespace hearth::controllers {
namespace {

using namespace std::chrono_literals;

class SandboxMetricsTest : public SandboxReconcilerTest {
 protected:
  // On a node: a pod that is deleted takes its time.
  SandboxMetricsTest() : SandboxReconcilerTest({.node = "n1"}) {}

  static constexpr char kLabels[] =
      R"(namespace="default",sandbox_template="unknown",owned_by="None")";

  bool shows(const std::string& line) {
    return metrics_.render().find("\n" + line + "\n") != std::string::npos;
  }
  bool counts(const std::string& name, const std::string& more, unsigned count) {
    return shows("agent_sandbox_" + name + "{" + kLabels + "," + more + "} " +
                 std::to_string(count));
  }
  bool mentions(std::string_view name) { return metrics_.render().find(name) != std::string::npos; }
};

TEST_F(SandboxMetricsTest, ASuspensionIsTimedUntilThePodIsGone) {
  make_ready();
  EXPECT_FALSE(mentions("suspend"));
  patch_sandbox("{spec: {operatingMode: Suspended}}");
  pass();
  EXPECT_FALSE(mentions("suspend"));
  clock_.advance(400ms);
  end_pod();
  pass();

  EXPECT_TRUE(counts("suspend_total", R"(result="success")", 1)) << metrics_.render();
  const std::string latency = std::string("agent_sandbox_suspend_latency_ms");
  EXPECT_TRUE(shows(latency + "_sum{" + kLabels + "} 400")) << metrics_.render();
  EXPECT_TRUE(shows(latency + "_bucket{" + kLabels + R"(,le="250"} 0)"));
  EXPECT_TRUE(shows(latency + "_bucket{" + kLabels + R"(,le="500"} 1)"));
  pass();
  EXPECT_TRUE(counts("suspend_total", R"(result="success")", 1));
}

TEST_F(SandboxMetricsTest, AResumptionIsTimedUntilItIsReady) {
  make_ready();
  EXPECT_FALSE(mentions("resume"));  // the first start is none
  patch_sandbox("{spec: {operatingMode: Suspended}}");
  pass();
  end_pod();
  pass();
  patch_sandbox("{spec: {operatingMode: Running}}");
  pass();
  clock_.advance(2s);
  run_pod();
  pass();

  EXPECT_TRUE(counts("resume_total", R"(result="success")", 1)) << metrics_.render();
  EXPECT_TRUE(shows(std::string("agent_sandbox_resume_latency_ms_sum{") + kLabels + "} 2000"));
  // Readiness that comes and goes is no resumption.
  set_pod_status("{conditions: [{type: Ready, status: 'False'}]}");
  pass();
  run_pod();
  pass();
  EXPECT_TRUE(counts("resume_total", R"(result="success")", 1));
}

TEST_F(SandboxMetricsTest, FailuresOfEitherAreCounted) {
  make_ready();
  patch_sandbox("{spec: {operatingMode: Suspended}}");
  client_.fail_next("delete pods", 500);
  failing_pass();
  EXPECT_TRUE(counts("suspend_total", R"(result="error")", 1)) << metrics_.render();
  pass();
  end_pod();
  pass();
  EXPECT_TRUE(counts("suspend_total", R"(result="success")", 1)) << metrics_.render();
  patch_sandbox("{spec: {operatingMode: Running}}");
  pass();
  end_pod();
  client_.fail_next("create pods", 500);
  failing_pass();
  EXPECT_TRUE(counts("resume_total", R"(result="error")", 1)) << metrics_.render();
}

TEST_F(SandboxMetricsTest, EndsAreCountedByTheirReason) {
  make_ready();
  set_pod_status("{phase: Succeeded}");
  pass();
  pass();
  EXPECT_TRUE(counts("finished_total", R"(reason="PodSucceeded")", 1)) << metrics_.render();
  patch_sandbox("{spec: {shutdownTime: '2001-01-01T00:00:00Z', shutdownPolicy: Retain}}");
  pass();
  pass();
  EXPECT_TRUE(counts("expired_total", R"(shutdown_policy="Retain")", 1)) << metrics_.render();
}

}  // namespace
}  // namespace hearth::controllers
