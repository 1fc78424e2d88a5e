#include "node/vacancy.h"

#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "base/clock.h"
#include "client/kinds.h"

namespace hearth::node {
namespace {

using namespace std::chrono_literals;
using apiserver::json;
using model::Json;

constexpr char kFull[] = "Insufficient cpu";

// A node with two processors.
class VacancyTest : public testing::Test {
 protected:
  VacancyTest() {
    client().create(client::kNodes, json(R"({"apiVersion":"v1","kind":"Node",
        "metadata":{"name":"here"}})"));
    client().patch(client::kNodes, "", "here", client::PatchKind::merge, json(R"({"status":
        {"allocatable":{"cpu":"2","memory":"4Gi","pods":"10"}}})"),
                   {.subresource = "status"});
    nodes_.start();
    bound_.start();
    EXPECT_TRUE(nodes_.wait_synced(1min) && bound_.wait_synced(1min));
  }
  void TearDown() override {
    bound_.stop();
    nodes_.stop();
  }

  client::Client& client() { return server_.client(); }
  static Json pod(std::string_view name) {
    return json(fmt::format(R"({{"apiVersion":"v1","kind":"Pod",
        "metadata":{{"name":"{}","namespace":"default"}},
        "spec":{{"nodeName":"here","containers":[{{"name":"main","image":"host",
          "resources":{{"requests":{{"cpu":"1"}}}}}}]}}}})",
                            name));
  }
  // It is bound, and the cache knows.
  void come(std::string_view name) {
    client().create(client::kPods, pod(name));
    while (!bound_.find("default", name)) std::this_thread::yield();
  }
  // Handlers hear of what the cache has a moment later.
  bool comes_to_take(std::string_view name) {
    for (int tries = 0; tries < 10000; ++tries) {
      if (vacancy_.take(pod(name)).empty()) return true;
      std::this_thread::sleep_for(1ms);
    }
    return false;
  }

  apiserver::TestServer server_;
  ManualClock clock_;
  client::WatchCache nodes_{server_.client(), client::kNodes};
  client::WatchCache bound_{server_.client(), client::kPods};
  Vacancy vacancy_{nodes_, bound_, clock_, "here"};
};

TEST_F(VacancyTest, APlaceIsGivenOnce) {
  EXPECT_EQ(vacancy_.take(pod("one")), "");
  EXPECT_EQ(vacancy_.take(pod("two")), "");
  EXPECT_EQ(vacancy_.take(pod("three")), kFull);
  EXPECT_EQ(vacancy_.take(pod("two")), "") << "it is the same pod that asks again";
  come("one");
  come("two");
  clock_.advance(1min);
  EXPECT_EQ(vacancy_.take(pod("three")), kFull) << "they are there, promised or not";
}

TEST_F(VacancyTest, WhoNeverComesLosesItsPlace) {
  EXPECT_EQ(vacancy_.take(pod("one")), "");
  EXPECT_EQ(vacancy_.take(pod("two")), "");
  clock_.advance(30s);
  EXPECT_EQ(vacancy_.take(pod("three")), "");
}

TEST_F(VacancyTest, WhoGoesOrEndsLeavesItsPlace) {
  come("one");
  come("two");
  client().patch(client::kPods, "default", "one", client::PatchKind::merge,
                 json(R"({"status":{"phase":"Succeeded"}})"), {.subresource = "status"});
  EXPECT_TRUE(comes_to_take("three"));
  EXPECT_EQ(vacancy_.take(pod("four")), kFull);
  client().remove(client::kPods, "default", "two", {.grace_seconds = 0});
  EXPECT_TRUE(comes_to_take("four"));
  EXPECT_EQ(vacancy_.take(pod("five")), kFull);
}

}  // namespace
}  // namespace hearth::node
