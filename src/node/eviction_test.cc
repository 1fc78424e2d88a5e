// Which pods go when the machine runs short.
#include <map>

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "base/error.h"
#include "client/kinds.h"
#include "model/meta.h"
#include "node/evictor.h"
#include "node/fake_sandboxes_internal.h"
#include "node/sandbox_ids.h"

namespace hearth::node {
namespace {

using apiserver::json;
using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TEST(Thresholds, AreWrittenAsForAKubelet) {
  const Thresholds some = parse_thresholds("memory.available<100Mi,pid.available<5%");
  EXPECT_EQ(some[Supply::memory]->of(1), 100 * kMiB);
  EXPECT_EQ(some[Supply::processes]->of(2000), 100U);
  EXPECT_FALSE(some[Supply::disk]);
  const Thresholds none = parse_thresholds("");
  EXPECT_FALSE(none[Supply::memory] || none[Supply::disk] || none[Supply::processes]);
  EXPECT_TRUE(parse_thresholds(kUsualThresholds)[Supply::disk]);
  for (const char* bad : {"memory.available", "memory.available<", "memory.available<-1",
                          "memory.available<101%", "swap.available<1", "memory.available<1,,"})
    EXPECT_THROW(parse_thresholds(bad), Error) << bad;
}

TEST(Pressure, IsLessThanMustBeLeft) {
  const Thresholds thresholds = parse_thresholds("memory.available<100Mi,nodefs.available<10%");
  Supplies now{{Amount{1000 * kMiB, 100 * kMiB}, Amount{1000, 99}, Amount{1000, 0}}};
  NodePressure pressure = pressure_of(now, thresholds);
  EXPECT_FALSE(pressure[Supply::memory]);
  EXPECT_TRUE(pressure[Supply::disk]);
  EXPECT_FALSE(pressure[Supply::processes]) << "nobody asked for some to be left";
  now[Supply::memory].available -= 1;
  EXPECT_TRUE(pressure_of(now, thresholds)[Supply::memory]);
  EXPECT_FALSE(pressure_of({}, thresholds)[Supply::memory]) << "what is not known is not short";
}

class EvictorTest : public testing::Test {
 protected:
  // With a container that has a request of memory and uses so much.
  void add_pod(const std::string& name, const std::string& request, std::uint64_t used,
               int priority = 0) {
    const Json made = server_.client().create(
        client::kPods,
        json(fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}",
            "namespace":"default"}},"spec":{{"nodeName":"here","priority":{},"containers":[
            {{"name":"c","image":"host","resources":{{"requests":{{"memory":"{}"}}}}}}]}}}})",
                         name, priority, request)));
    runtime::SandboxSpec spec;
    spec.id = name_sandbox(model::uid_of(made), "c", 0).id();
    runtime_.create(spec);
    runtime_.set_memory(spec.id, used);
    ids_[name] = spec.id;
  }
  void expect_synced() {
    pods_.start();
    ASSERT_TRUE(pods_.wait_synced(10s));
  }
  // Who was told to go.
  std::string look() {
    told_.clear();
    evictor_.look();
    return told_;
  }

  apiserver::TestServer server_;
  FakeSandboxes runtime_;
  ManualClock clock_;
  client::WatchCache pods_{server_.client(), client::kPods};
  Supplies now_{{Amount{1000 * kMiB, 50 * kMiB}, {}, {}}};
  std::map<std::string, std::string> ids_;
  std::string told_;
  std::string why_;
  Evictor evictor_{runtime_,
                   pods_,
                   clock_,
                   {.thresholds = parse_thresholds("memory.available<100Mi"),
                    .supplies = [this] { return now_; },
                    .evict =
                        [this](const Json& pod, const std::string& why) {
                          told_ = model::name_of(pod);
                          why_ = why;
                        }}};
};

TEST_F(EvictorTest, WhoUsesMoreThanItAskedForGoesFirst) {
  add_pod("modest", "512Mi", 400 * kMiB);
  add_pod("greedy", "1Mi", 200 * kMiB);
  add_pod("greediest", "1Mi", 300 * kMiB);
  add_pod("important", "1Mi", 800 * kMiB, 7);
  add_pod("sacred", "1Mi", 900 * kMiB, 2'000'000'000);
  expect_synced();
  for (const char* name : {"greediest", "greedy", "important", "modest"}) {
    EXPECT_EQ(look(), name);
    EXPECT_EQ(look(), "") << "one at a time, until it is gone";
    runtime_.destroy(ids_[name]);
    server_.client().remove(client::kPods, "default", name, {.grace_seconds = 0});
    ASSERT_TRUE(apiserver::eventually([&] { return !pods_.find("default", name); }));
  }
  EXPECT_EQ(look(), "");
}

TEST_F(EvictorTest, ItSaysWhy) {
  add_pod("greedy", "1Mi", 200 * kMiB);
  expect_synced();
  EXPECT_EQ(look(), "greedy");
  EXPECT_EQ(why_,
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
            "Container c was using 200Mi, request is 1Mi, has larger consumption of memory. ");
}

TEST_F(EvictorTest, ThereIsCalmAfterAShortage) {
  expect_synced();
  EXPECT_TRUE(evictor_.look()[Supply::memory]);
  now_[Supply::memory].available = 500 * kMiB;
  clock_.advance(29s);
  EXPECT_TRUE(evictor_.look()[Supply::memory]);
  clock_.advance(2s);
  EXPECT_FALSE(evictor_.look()[Supply::memory]);
}

TEST_F(EvictorTest, NobodyGoesWhileThereIsEnough) {
  add_pod("greedy", "1Mi", 200 * kMiB);
  expect_synced();
  now_[Supply::memory].available = 100 * kMiB;
  EXPECT_EQ(look(), "");
}

}  // namespace
}  // namespace hearth::node
