#include "reconcile/controller.h"

#include <functional>
#include <future>
#include <mutex>
#include <set>

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "base/error.h"
#include "client/kinds.h"
#include "reconcile/manager.h"

namespace hearth::reconcile {
namespace {

using namespace std::chrono_literals;
using apiserver::json;
using apiserver::TestServer;
using model::Json;
using model::Key;

// Does what the test says, and knows what it was asked.
class Told : public Reconciler {
 public:
  explicit Told(std::function<Next(const Key& key)> act = {}) : act_(std::move(act)) {}

  Next reconcile(const Key& key) override {
    Next next = kWhenChanged;
    std::exception_ptr failure;
    try {
      if (act_) next = act_(key);
    } catch (...) {
      failure = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      ++seen_[key];
      changed_.notify_all();
    }
    if (failure) std::rethrow_exception(failure);
    return next;
  }

  // Whether a key comes so often, in time.
  bool wait_for(const Key& key, int times) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 10s, [&] { return seen_[key] >= times; });
  }
  int times(const Key& key) {
    const std::lock_guard lock(mutex_);
    return seen_[key];
  }

 private:
  std::function<Next(const Key& key)> act_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, int> seen_;
};

Json config_map(const std::string& name, const std::string& more = "") {
  return json(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":")" + name +
      "\"" + more + "}}");
}

std::string owned_by(const std::string& api_version, const std::string& kind,
                     const std::string& name) {
  return R"(,"ownerReferences":[{"controller":true,"uid":"u-1","apiVersion":")" + api_version +
         R"(","kind":")" + kind + R"(","name":")" + name + R"("}])";
}

void label(client::Client& client, const std::string& name, const std::string& value) {
  client.patch(client::kConfigMaps, "default", name, client::PatchKind::merge,
               json(R"({"metadata":{"labels":{"x":")" + value + R"("}}})"));
}

ControllerOptions quick(unsigned workers = 2) {
  return {.name = "test", .workers = workers, .queue = {.first_pause = 1ms, .most_pause = 20ms}};
}

class ControllerTest : public testing::Test {
 protected:
  client::Client& client() { return server_.client(); }
  client::WatchCache& config_maps() { return manager_.cache(client::kConfigMaps); }
  // Ends before the test's reconcilers, which are older: objects of the server's own come at any
  // time.
  struct Running {
    explicit Running(Manager& which) : manager(which) {}
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { manager.stop(); }

    Manager& manager;
  };
  [[nodiscard]] Running start() {
    manager_.start_caches(30s);
    manager_.start_controllers();
    return Running(manager_);
  }
  Key key(const std::string& name) { return {"default", name}; }
  // Objects whose key comes again prove that everything before them was heard.
  void create(const std::string& name, const std::string& more = "") {
    client().create(client::kConfigMaps, config_map(name, more));
  }

  TestServer server_;
  Manager manager_{server_.client()};
};

TEST_F(ControllerTest, WhatIsThereAndWhatComesIsReconciled) {
  Told told;
  manager_.add(told, quick()).watch(config_maps());
  create("early");
  const Running running = start();
  EXPECT_TRUE(told.wait_for(key("early"), 1));
  create("late");
  EXPECT_TRUE(told.wait_for(key("late"), 1));
  label(client(), "late", "1");
  EXPECT_TRUE(told.wait_for(key("late"), 2));
  client().remove(client::kConfigMaps, "default", "late");
  EXPECT_TRUE(told.wait_for(key("late"), 3));
}

TEST_F(ControllerTest, UpdatesThatAreNotWorthItAreNotLookedAt) {
  Told told;
  manager_.add(told, quick(1)).watch(config_maps(), [](const Json& before, const Json& now) {
    return model::label_of(before, "x") != "skip" && model::label_of(now, "x") != "skip";
  });
  create("a");
  const Running running = start();
  EXPECT_TRUE(told.wait_for(key("a"), 1));
  label(client(), "a", "skip");
  create("marker");
  EXPECT_TRUE(told.wait_for(key("marker"), 1));
  EXPECT_EQ(told.times(key("a")), 1);
  client().remove(client::kConfigMaps, "default", "a");
  EXPECT_TRUE(told.wait_for(key("a"), 2)) << "a deletion always counts";
}

TEST_F(ControllerTest, OwnedObjectsNameTheirOwnerByGroupAndKind) {
  Told told;
  manager_.add(told, quick(1)).watch_owned(config_maps(), "agents.x-k8s.io", "Sandbox");
  const Running running = start();
  create("a", owned_by("agents.x-k8s.io/v1alpha1", "Sandbox", "old-version"));
  create("b", owned_by("extensions.agents.x-k8s.io/v1beta1", "Sandbox", "other-group"));
  create("c", owned_by("agents.x-k8s.io/v1beta1", "Pod", "other-kind"));
  create("d");
  create("e", owned_by("agents.x-k8s.io/v1beta1", "Sandbox", "mine"));
  EXPECT_TRUE(told.wait_for(key("mine"), 1));
  EXPECT_EQ(told.times(key("old-version")), 1);
  for (const char* name : {"other-group", "other-kind", "a", "d", ""}) {
    EXPECT_EQ(told.times(key(name)), 0) << name;
  }
}

TEST_F(ControllerTest, WhoWasConcernedBeforeIsLookedAtToo) {
  Told told;
  manager_.add(told, quick(1)).watch_mapped(config_maps(), [](const Json& object) {
    return std::vector{Key{"", std::string(model::label_of(object, "x"))}};
  });
  create("a", R"(,"labels":{"x":"one"})");
  const Running running = start();
  EXPECT_TRUE(told.wait_for({"", "one"}, 1));
  label(client(), "a", "two");
  EXPECT_TRUE(told.wait_for({"", "one"}, 2));
  EXPECT_TRUE(told.wait_for({"", "two"}, 1));
}

TEST_F(ControllerTest, FailuresAreTriedAgainAndNextIsKept) {
  std::atomic<int> tries = 0;
  Told told([&](const Key& key) -> Next {
    if (key.name == "status" && ++tries < 4) {
      model::throw_not_found({"", "pods"}, "gone");
    }
    if (key.name == "unprocessable") model::throw_invalid({"", "Pod"}, "x", {});
    if (key.name == "away") fail(Code::unavailable, "nobody is there");
    if (key.name == "thrown") throw std::runtime_error("not one of ours");
    if (key.name == "clock") return 1ms;
    return kWhenChanged;
  });
  Controller& controller = manager_.add(told, quick(4));
  const Running running = start();
  for (const char* name : {"status", "unprocessable", "away", "thrown", "clock"}) {
    controller.queue().add(key(name));
  }
  EXPECT_TRUE(told.wait_for(key("status"), 4));
  EXPECT_TRUE(told.wait_for(key("unprocessable"), 3));
  EXPECT_TRUE(told.wait_for(key("away"), 3));
  EXPECT_TRUE(told.wait_for(key("thrown"), 3));
  EXPECT_TRUE(told.wait_for(key("clock"), 5));
  manager_.stop();
  EXPECT_EQ(told.times(key("status")), 4);
  EXPECT_GE(controller.counts().failed, 12U);
  EXPECT_GE(controller.counts().succeeded, 6U);
}

TEST_F(ControllerTest, WhatMakesNoSenseIsNotTriedBeforeItChanges) {
  Told told([](const Key& key) -> Next {
    if (key.name == "bad") fail(Code::invalid, "no sense in it");
    return kWhenChanged;
  });
  Controller& controller = manager_.add(told, quick(1));
  controller.watch(config_maps());
  create("bad");
  const Running running = start();
  EXPECT_TRUE(told.wait_for(key("bad"), 1));
  // Longer than the longest pause.
  controller.queue().add_after(key("marker"), 30ms);
  EXPECT_TRUE(told.wait_for(key("marker"), 1));
  EXPECT_EQ(told.times(key("bad")), 1);
  label(client(), "bad", "1");
  EXPECT_TRUE(told.wait_for(key("bad"), 2));
}

TEST_F(ControllerTest, EverythingIsLookedAtAgainInTime) {
  Told told;
  ControllerOptions options = quick(1);
  options.resync = 10ms;
  manager_.add(told, options).watch(config_maps());
  create("a");
  const Running running = start();
  EXPECT_TRUE(told.wait_for(key("a"), 4));
}

TEST_F(ControllerTest, StoppingWaitsForWhatIsBeingDone) {
  std::atomic<bool> is_done = false;
  Told told;
  std::promise<void> begun;
  Told slow([&](const Key&) -> Next {
    begun.set_value();
    std::this_thread::sleep_for(20ms);
    is_done = true;
    return kWhenChanged;
  });
  Controller& controller = manager_.add(slow, quick(1));
  const Running running = start();
  controller.queue().add(key("a"));
  begun.get_future().wait();
  manager_.stop();
  EXPECT_TRUE(is_done);
  manager_.stop();
}

TEST_F(ControllerTest, NumbersHaveTheNamesThatPeopleKnow) {
  metrics::Registry registry;
  Told told([](const Key& key) -> Next {
    if (key.name == "bad") fail(Code::invalid, "no sense in it");
    return kWhenChanged;
  });
  TestServer server;
  Manager manager(server.client(), &registry);
  Controller& controller = manager.add(told, quick(1));
  manager.start_caches();
  manager.start_controllers();
  controller.queue().add(key("good"));
  controller.queue().add(key("bad"));
  EXPECT_TRUE(told.wait_for(key("bad"), 1));
  manager.stop();
  const std::string text = registry.render();
  for (const char* line :
       {"controller_runtime_reconcile_total{controller=\"test\",result=\"success\"} 1\n",
        "controller_runtime_reconcile_total{controller=\"test\",result=\"error\"} 1\n",
        "controller_runtime_terminal_reconcile_errors_total{controller=\"test\"} 1\n",
        "controller_runtime_max_concurrent_reconciles{controller=\"test\"} 1\n",
        "controller_runtime_reconcile_time_seconds_count{controller=\"test\"} 2\n",
        "workqueue_adds_total{controller=\"test\",name=\"test\"} 2\n",
        "workqueue_depth{controller=\"test\",name=\"test\"} 0\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST_F(ControllerTest, ACacheIsSharedAndGetsEveryonesIndexes) {
  const auto by = [](const std::string& text) {
    return [text](const Json&) { return std::vector{text}; };
  };
  client::WatchCache& one = manager_.cache(client::kConfigMaps, {.indexes = {{"one", by("1")}}});
  client::WatchCache& two = manager_.cache(client::kConfigMaps, {.indexes = {{"two", by("2")}}});
  EXPECT_EQ(&one, &two);
  EXPECT_FALSE(manager_.is_synced());
  create("a");
  manager_.start_caches();
  EXPECT_TRUE(manager_.is_synced());
  EXPECT_EQ(one.find_by_index("one", "1").size(), one.list().size());
  EXPECT_EQ(one.find_by_index("two", "2").size(), one.list().size());
  EXPECT_GE(one.list().size(), 1U);
}

TEST_F(ControllerTest, WhoHasPatienceLetsUrgentOnesGoFirst) {
  std::promise<void> may_end;
  Told urgent([&, end = may_end.get_future().share()](const Key&) {
    end.wait();
    return kWhenChanged;
  });
  Told patient;
  Controller& first = manager_.add(urgent, {.name = "urgent", .is_urgent = true});
  const Key in_a_hurry{"default", "hurry"};
  Controller& second =
      manager_.add(patient, {.name = "patient", .patience = 1h, .can_wait = [&](const Key& key) {
                               return key != in_a_hurry;
                             }});
  manager_.start_caches();
  manager_.start_controllers();
  const Key key{"default", "one"};
  first.queue().add(key);
  while (!manager_.right_of_way().is_busy()) std::this_thread::yield();
  second.queue().add(in_a_hurry);
  EXPECT_TRUE(patient.wait_for(in_a_hurry, 1));
  second.queue().add(key);
  EXPECT_EQ(patient.times(key), 0);
  may_end.set_value();
  EXPECT_TRUE(patient.wait_for(key, 1));
  EXPECT_EQ(urgent.times(key), 1);
}

TEST_F(ControllerTest, WhatUrgentOnesWriteIsDueLaterForWhoHasPatience) {
  Told patient;
  Controller& controller =
      manager_.add(patient, {.name = "patient", .patience = 1h, .can_wait = [&](const Key& each) {
                               return each != key("in-a-hurry");
                             }});
  controller.watch(config_maps());
  create("a-first-one");
  create("in-a-hurry");
  {
    const RightOfWay::Urgent urgent(manager_.right_of_way());
    manager_.start_caches(30s);  // and handlers have heard of both, in this order
    const auto taken = controller.queue().take({});
    EXPECT_EQ(*taken, key("in-a-hurry"));
    controller.queue().done(*taken);
  }
  manager_.start_controllers();
  const Running running(manager_);
  EXPECT_TRUE(patient.wait_for(key("a-first-one"), 1));
}

TEST_F(ControllerTest, ACacheThatDoesNotSyncIsNamed) {
  manager_.cache({"no.such.group", "v1", "things"});
  try {
    manager_.start_caches(20ms);
    ADD_FAILURE() << "synced with nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::timeout);
    EXPECT_NE(std::string(error.what()).find("things of no.such.group/v1"), std::string::npos);
  }
}

TEST_F(ControllerTest, WaitingForCachesCanBeCalledOff) {
  manager_.cache({"no.such.group", "v1", "things"});
  std::stop_source stop;
  stop.request_stop();
  try {
    manager_.start_caches(1h, stop.get_token());
    ADD_FAILURE() << "synced with nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unavailable);
  }
}

}  // namespace
}  // namespace hearth::reconcile
