#include "node/life.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::node {
namespace {

using namespace std::chrono_literals;

Json pod_with(std::string_view policy, std::string_view init = "[]",
              std::string_view containers = R"([{"name":"a"},{"name":"b"}])") {
  return model::parse_json(
             fmt::format(
                 R"({{"spec":{{"restartPolicy":"{}","initContainers":{},"containers":{}}}}})",
                 policy, init, containers))
      .value;
}

Pod known_of(const Json& pod) {
  Pod known;
  known.containers = containers_of(pod);
  return known;
}

void run(Container& container) {
  container.stage = Stage::running;
  container.is_started = container.is_ready = true;
}

void end(Container& container, int code) {
  container.stage = Stage::terminated;
  container.end = Ending{.exit_code = code};
}

TEST(Life, RestartPolicies) {
  struct Case {
    const char* policy;
    const char* own;
    int code;
    bool restarts;
  };
  for (const Case& one : {Case{"Always", "", 0, true},
                          {"Always", "", 1, true},
                          {"OnFailure", "", 0, false},
                          {"OnFailure", "", 1, true},
                          {"Never", "", 0, false},
                          {"Never", "", 1, false},
                          {"Never", "Always", 0, true},
                          {"Always", "Never", 1, false}}) {
    const Json pod = pod_with(one.policy, "[]",
                              fmt::format(R"([{{"name":"a","restartPolicy":"{}"}}])", one.own));
    const Container container = containers_of(pod).front();
    EXPECT_EQ(restarts(pod, container, Ending{.exit_code = one.code}), one.restarts)
        << one.policy << " " << one.own << " " << one.code;
  }
}

TEST(Life, InitContainersThatAreThroughStayThrough) {
  const Json pod = pod_with("Always", R"([{"name":"i"},{"name":"s","restartPolicy":"Always"}])");
  const auto containers = containers_of(pod);
  EXPECT_EQ(containers[0].kind, Kind::init);
  EXPECT_EQ(containers[1].kind, Kind::sidecar);
  EXPECT_FALSE(restarts(pod, containers[0], Ending{.exit_code = 0}));
  EXPECT_TRUE(restarts(pod, containers[0], Ending{.exit_code = 1}));
  EXPECT_TRUE(restarts(pod, containers[1], Ending{.exit_code = 0}));
}

TEST(Life, PausesDoubleUpToFiveMinutes) {
  EXPECT_EQ(pause_before_restart(0), 0s);
  EXPECT_EQ(pause_before_restart(1), 10s);
  EXPECT_EQ(pause_before_restart(2), 20s);
  EXPECT_EQ(pause_before_restart(5), 160s);
  EXPECT_EQ(pause_before_restart(6), 300s);
  EXPECT_EQ(pause_before_restart(4'000'000'000), 300s);
}

TEST(Life, EphemeralContainersLiveOnceAndCountForNothing) {
  Json pod = pod_with("Always", R"([{"name":"i"}])", R"([{"name":"a"}])");
  Pod known = known_of(pod);
  EXPECT_TRUE(newcomers_of(pod, known).empty());
  pod.at("spec").as_object()["ephemeralContainers"] =
      model::parse_json(R"([{"name":"e","image":"host"}])").value;
  const auto newcomers = newcomers_of(pod, known);
  ASSERT_EQ(newcomers.size(), 1U);
  EXPECT_EQ(newcomers[0].kind, Kind::ephemeral);
  known.containers.push_back(newcomers[0]);
  EXPECT_EQ(&spec_of(pod, known.containers[2]), &pod.at("spec").at("ephemeralContainers").at(0));

  using Indexes = std::vector<std::size_t>;
  EXPECT_EQ(startable(pod, known), Indexes({0, 2}));  // it waits for nobody
  run(known.containers[2]);
  EXPECT_EQ(phase_of(pod, known), "Pending");
  end(known.containers[0], 0);
  run(known.containers[1]);
  end(known.containers[2], 1);
  EXPECT_EQ(startable(pod, known), Indexes());
  EXPECT_EQ(phase_of(pod, known), "Running");
}

TEST(Life, WhoStartsWhen) {
  const Json pod = pod_with("Always", R"([{"name":"i"},{"name":"s","restartPolicy":"Always"}])");
  Pod known = known_of(pod);
  using Indexes = std::vector<std::size_t>;
  EXPECT_EQ(startable(pod, known), Indexes({0}));
  EXPECT_EQ(phase_of(pod, known), "Pending");
  run(known.containers[0]);
  EXPECT_EQ(startable(pod, known), Indexes());
  end(known.containers[0], 1);
  EXPECT_EQ(startable(pod, known), Indexes({0}));
  end(known.containers[0], 0);
  EXPECT_EQ(startable(pod, known), Indexes({1}));
  run(known.containers[1]);
  known.containers[1].is_started = false;
  EXPECT_EQ(startable(pod, known), Indexes()) << "its startup probe is not through";
  EXPECT_EQ(phase_of(pod, known), "Pending");
  known.containers[1].is_started = true;
  EXPECT_EQ(startable(pod, known), Indexes({2, 3}));
  run(known.containers[2]);
  run(known.containers[3]);
  EXPECT_EQ(phase_of(pod, known), "Running");
  end(known.containers[1], 1);
  end(known.containers[2], 0);
  EXPECT_EQ(startable(pod, known), Indexes({1, 2})) << "but no init container again";
  EXPECT_EQ(phase_of(pod, known), "Running");
  known.is_ending = true;
  EXPECT_EQ(startable(pod, known), Indexes());
}

TEST(Life, Phases) {
  const Json never = pod_with("Never");
  Pod known = known_of(never);
  EXPECT_EQ(phase_of(never, known), "Pending");
  run(known.containers[0]);
  EXPECT_EQ(phase_of(never, known), "Pending") << "one of two";
  end(known.containers[1], 0);
  EXPECT_EQ(phase_of(never, known), "Running");
  EXPECT_FALSE(is_through(never, known));
  end(known.containers[0], 0);
  EXPECT_EQ(phase_of(never, known), "Succeeded");
  EXPECT_TRUE(is_through(never, known));
  end(known.containers[0], 2);
  EXPECT_EQ(phase_of(never, known), "Failed");
  const Json failing = pod_with("OnFailure");
  EXPECT_EQ(phase_of(failing, known), "Running") << "one lives again";
  known.failure = "Evicted";
  EXPECT_EQ(phase_of(failing, known), "Failed");
  run(known.containers[0]);
  EXPECT_EQ(phase_of(failing, known), "Running") << "until it is over";
}

TEST(Life, ASidecarThatRunsKeepsThePodRunning) {
  const Json pod =
      pod_with("Never", R"([{"name":"s","restartPolicy":"Always"}])", R"([{"name":"a"}])");
  Pod known = known_of(pod);
  run(known.containers[0]);
  end(known.containers[1], 0);
  EXPECT_TRUE(is_through(pod, known));
  EXPECT_EQ(phase_of(pod, known), "Running");
  end(known.containers[0], 143);
  EXPECT_EQ(phase_of(pod, known), "Succeeded") << "how a sidecar ends does not count";
}

TEST(Life, AnInitContainerThatFailsForGoodFailsThePod) {
  const Json pod = pod_with("Never", R"([{"name":"i"}])");
  Pod known = known_of(pod);
  end(known.containers[0], 1);
  EXPECT_EQ(phase_of(pod, known), "Failed");
  EXPECT_TRUE(is_through(pod, known));
  EXPECT_TRUE(startable(pod, known).empty());
}

TEST(Life, OneThatIsReplacedLivesAgainWhateverThePolicySays) {
  const Json pod = pod_with("Never", "[]", R"([{"name":"a"}])");
  Pod known = known_of(pod);
  end(known.containers[0], 143);
  known.containers[0].is_replaced = true;
  EXPECT_FALSE(is_through(pod, known));
  EXPECT_EQ(startable(pod, known), std::vector<std::size_t>({0}));
}

}  // namespace
}  // namespace hearth::node
