#include "client/watch_cache.h"

#include <deque>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/guarded.h"
#include "client/silent_client_internal.h"
#include "model/selector.h"

namespace hearth::client {
namespace {

using namespace std::chrono_literals;

const ResourceId kPods{"", "v1", "pods"};

Json pod(const std::string& name, int version, const std::string& ns = "a",
         const std::string& uid = {}, const std::string& owner = {}) {
  Json json = model::JsonObject{{"kind", "Pod"}};
  model::JsonObject& metadata = model::make_object_at(json, {"metadata"});
  metadata["name"] = name;
  metadata["namespace"] = ns;
  metadata["uid"] = uid.empty() ? "u-" + name : uid;
  metadata["resourceVersion"] = std::to_string(version);
  if (!owner.empty())
    metadata["ownerReferences"] = model::JsonArray(1, model::JsonObject{{"uid", owner}});
  return json;
}

Event added(Json object) {
  return {EventKind::added, Answer(std::move(object))};
}
Event modified(Json object) {
  return {EventKind::modified, Answer(std::move(object))};
}
Event deleted(Json object) {
  return {EventKind::deleted, Answer(std::move(object))};
}
Event bookmark(int version, bool is_initial_end = false) {
  Json json = pod("", version);
  if (is_initial_end) {
    model::make_object_at(json, {"metadata", "annotations"})["k8s.io/initial-events-end"] = "true";
  }
  return {EventKind::bookmark, Answer(std::move(json))};
}

// One watch: what it says and how it ends.
struct Script {
  std::vector<Event> events;
  std::function<WatchEnd()> end = [] { return WatchEnd::closed; };
};

WatchEnd refuse(unsigned code, int retry_after = 0) {
  throw model::StatusError({.code = code, .message = "no", .retry_after_seconds = retry_after});
}

// A client whose watches and lists follow scripts; after the last one a watch is silent.
class FakeClient : public SilentClient {
 public:
  List list(const ResourceId&, const ListOptions& options) override {
    const std::lock_guard lock(mutex_);
    listed.push_back(options);
    if (lists.empty()) fail(Code::unavailable, "nothing to list");
    List page = std::move(lists.front());
    lists.pop_front();
    return page;
  }

  WatchEnd watch(const ResourceId&, const WatchOptions& options,
                 const std::function<void(Event)>& handler, const std::stop_token& stop) override {
    std::unique_lock lock(mutex_);
    watched.push_back(options);
    if (scripts.empty()) {
      is_silent = true;
      changed_.notify_all();
      changed_.wait(lock, stop, [] { return false; });
      return WatchEnd::stopped;
    }
    Script script = std::move(scripts.front());
    scripts.pop_front();
    lock.unlock();
    for (Event& event : script.events) handler(std::move(event));
    return script.end();
  }

  // Until every script was followed.
  void wait_silent() {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, 10s, [&] { return is_silent; }));
  }

  std::deque<Script> scripts;
  std::deque<List> lists;
  std::vector<WatchOptions> watched;
  std::vector<ListOptions> listed;
  bool is_silent = false;

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
};

class WatchCacheTest : public testing::Test {
 protected:
  // Follows all scripts.
  WatchCache& run() {
    options_.first_pause = 1us;
    options_.most_pause = 1us;
    cache_.emplace(client_, kPods, options_);
    const auto note = [this](const std::string& what) { heard_.push_back(what); };
    const auto word = [](const Object& object) {
      return fmt::format("{}@{}", model::text_at(*object, {"metadata", "name"}),
                         model::text_at(*object, {"metadata", "resourceVersion"}));
    };
    cache_->add_handlers({
        .on_add = [=](const Object& now) { note("+" + word(now)); },
        .on_update = [=](const Object& before,
                         const Object& now) { note(word(before) + ">" + word(now)); },
        .on_delete = [=](const Object& last) { note("-" + word(last)); },
    });
    cache_->start();
    client_.wait_silent();
    return *cache_;
  }
  static std::vector<std::string> names(const std::vector<Object>& objects) {
    std::vector<std::string> all;
    for (const Object& object : objects) {
      all.emplace_back(model::text_at(*object, {"metadata", "name"}));
    }
    return all;
  }
  using Words = std::vector<std::string>;

  FakeClient client_;
  WatchCacheOptions options_;
  Words heard_;  // by the cache's thread, until client_ is silent
  std::optional<WatchCache> cache_;
};

TEST_F(WatchCacheTest, BeginsWithAStreamingList) {
  options_.ns = "a";
  options_.label_selector = "l";
  options_.field_selector = "f";
  client_.scripts.push_back(
      {{added(pod("x", 1)), added(pod("y", 2)), bookmark(5, true), modified(pod("x", 6)),
        deleted(pod("y", 7)), added(pod("z", 8)), bookmark(9)}});

  WatchCache& cache = run();

  EXPECT_TRUE(cache.wait_synced(10s));
  EXPECT_EQ(heard_, (Words{"+x@1", "+y@2", "x@1>x@6", "-y@7", "+z@8"}));
  EXPECT_EQ(names(cache.list()), (Words{"x", "z"}));
  EXPECT_TRUE(client_.listed.empty());
  ASSERT_EQ(client_.watched.size(), 2U);
  EXPECT_TRUE(client_.watched[0].initial_events);
  EXPECT_TRUE(client_.watched[0].bookmarks);
  EXPECT_EQ(client_.watched[0].resource_version, "");
  EXPECT_EQ(client_.watched[0].ns, "a");
  EXPECT_EQ(client_.watched[0].label_selector, "l");
  EXPECT_EQ(client_.watched[0].field_selector, "f");
  // It goes on from the last bookmark.
  EXPECT_FALSE(client_.watched[1].initial_events);
  EXPECT_EQ(client_.watched[1].resource_version, "9");
}

TEST_F(WatchCacheTest, NothingIsShownBeforeAllIsHere) {
  client_.scripts.push_back({{added(pod("x", 1)), bookmark(3), deleted(pod("x", 4))}});
  client_.lists.push_back({{pod("y", 2)}, "5", ""});

  WatchCache& cache = run();

  EXPECT_EQ(heard_, Words{"+y@2"});
  EXPECT_TRUE(cache.is_synced());
  EXPECT_EQ(client_.listed.size(), 1U);
}

TEST_F(WatchCacheTest, ListsWhereStreamingIsRefused) {
  for (const unsigned code : {400U, 422U}) {
    FakeClient client;
    client.scripts.push_back({{}, [code] { return refuse(code); }});
    client.lists.push_back({{pod("x", 1)}, "5", "more"});
    client.lists.push_back({{pod("y", 2)}, "5", ""});
    WatchCache cache(client, kPods);
    cache.start();
    client.wait_silent();
    EXPECT_TRUE(cache.is_synced());
    EXPECT_EQ(names(cache.list()), (Words{"x", "y"}));
    EXPECT_FALSE(client.watched[1].initial_events);
    EXPECT_EQ(client.watched[1].resource_version, "5");
  }
}

TEST_F(WatchCacheTest, ARefusalIsRemembered) {
  client_.scripts.push_back({{}, [] { return refuse(422); }});
  client_.lists.push_back({{}, "5", ""});
  client_.scripts.push_back({{}, [] { return WatchEnd::expired; }});
  client_.lists.push_back({{}, "6", ""});

  run();

  ASSERT_EQ(client_.watched.size(), 3U);
  EXPECT_FALSE(client_.watched[2].initial_events);
  EXPECT_EQ(client_.watched[2].resource_version, "6");
}

TEST_F(WatchCacheTest, ReadsAnewWhatExpired) {
  client_.scripts.push_back({{added(pod("gone", 1)), added(pod("same", 2)), added(pod("new", 3)),
                              added(pod("twin", 4)), bookmark(5, true)},
                             [] { return WatchEnd::expired; }});
  client_.scripts.push_back({{added(pod("same", 2)), added(pod("new", 8)),
                              added(pod("twin", 9, "a", "other")), bookmark(10, true)}});

  run();

  // In words that a reconciler understands: what went, what changed, what came.
  EXPECT_EQ(heard_, (Words{"+gone@1", "+new@3", "+same@2", "+twin@4", "-gone@1", "new@3>new@8",
                           "-twin@4", "+twin@9"}));
  EXPECT_TRUE(client_.watched[1].initial_events);
}

TEST_F(WatchCacheTest, GoesOnAfterAWatchThatEnded) {
  client_.scripts.push_back({{bookmark(5, true)}});
  client_.scripts.push_back({{added(pod("x", 6))}});
  client_.scripts.push_back({{}, []() -> WatchEnd { fail(Code::unavailable, "refused"); }});
  client_.scripts.push_back({{}, []() -> WatchEnd { fail(Code::timeout, "silent"); }});
  client_.scripts.push_back({{}, [] { return refuse(429); }});

  run();

  ASSERT_EQ(client_.watched.size(), 6U);
  EXPECT_EQ(client_.watched[1].resource_version, "5");
  for (std::size_t i = 2; i < 6; ++i) EXPECT_EQ(client_.watched[i].resource_version, "6");
  EXPECT_EQ(heard_, Words{"+x@6"});
}

TEST_F(WatchCacheTest, ReadsAnewAfterErrors) {
  client_.scripts.push_back({{added(pod("x", 1)), bookmark(5, true)}});
  client_.scripts.push_back({{}, [] { return refuse(500); }});
  client_.scripts.push_back({{added(pod("x", 1)), bookmark(6, true)}});
  client_.scripts.push_back({{}, []() -> WatchEnd { fail(Code::invalid, "garbage"); }});
  client_.scripts.push_back({{added(pod("x", 1)), bookmark(7, true)}});

  run();

  ASSERT_EQ(client_.watched.size(), 6U);
  EXPECT_TRUE(client_.watched[2].initial_events);
  EXPECT_TRUE(client_.watched[4].initial_events);
  EXPECT_EQ(client_.watched[5].resource_version, "7");
  EXPECT_EQ(heard_, Words{"+x@1"});
}

TEST_F(WatchCacheTest, SurvivesObjectsThatAreNone) {
  client_.scripts.push_back({{added(Json("text")), bookmark(5, true)}});
  client_.lists.push_back({{Json(1)}, "1", ""});
  client_.scripts.push_back({{added(pod("x", 1)), bookmark(6, true)}});

  run();

  EXPECT_EQ(heard_, Words{"+x@1"});
}

TEST_F(WatchCacheTest, WhatItNeverHadDoesNotGo) {
  client_.scripts.push_back({{bookmark(5, true), deleted(pod("x", 6)), modified(pod("y", 7)),
                              added(pod("y", 8)), modified(pod("y", 8))}});

  run();

  EXPECT_EQ(heard_, (Words{"+y@7", "y@7>y@8"}));
}

TEST_F(WatchCacheTest, FindsByNamespaceAndName) {
  client_.scripts.push_back({{added(pod("x", 1, "a")), added(pod("x", 2, "a-b")),
                              added(pod("y", 3, "a")), added(pod("n", 4, "")), bookmark(5, true)}});

  WatchCache& cache = run();

  EXPECT_EQ(names(cache.list("a")), (Words{"x", "y"}));
  EXPECT_EQ(names(cache.list("a-b")), Words{"x"});
  EXPECT_TRUE(cache.list("b").empty());
  EXPECT_EQ(cache.list().size(), 4U);
  EXPECT_EQ(model::text_at(*cache.find("a-b", "x"), {"metadata", "resourceVersion"}), "2");
  EXPECT_FALSE(cache.find("b", "x"));
  EXPECT_TRUE(cache.find("", "n"));
}

TEST_F(WatchCacheTest, FindsByLabels) {
  Json labelled = pod("y", 3);
  model::make_object_at(labelled, {"metadata", "labels"})["tier"] = "front";
  client_.scripts.push_back({{added(pod("x", 1)), added(labelled), bookmark(5, true)}});

  WatchCache& cache = run();

  EXPECT_EQ(names(cache.select(model::LabelSelector::parse("tier in (front)"))), Words{"y"});
  EXPECT_EQ(names(cache.select(model::LabelSelector::parse("!tier"))), Words{"x"});
  EXPECT_TRUE(cache.select(model::LabelSelector::parse("tier"), "b").empty());
}

TEST_F(WatchCacheTest, FindsByIndex) {
  options_.indexes["owner"] = owner_uids;
  client_.scripts.push_back(
      {{added(pod("x", 1, "a", "", "o1")), added(pod("y", 2, "b", "", "o1")),
        added(pod("z", 3, "a", "", "o2")), added(pod("w", 4)), bookmark(5, true),
        modified(pod("x", 6, "a", "", "o2")), deleted(pod("y", 7, "b"))}});

  WatchCache& cache = run();

  EXPECT_TRUE(cache.find_by_index("owner", "o1").empty());
  EXPECT_EQ(names(cache.find_by_index("owner", "o2")), (Words{"x", "z"}));
  EXPECT_TRUE(cache.find_by_index("owner", "o3").empty());
  EXPECT_THROW(cache.find_by_index("other", "o1"), Error);
}

TEST_F(WatchCacheTest, AHandlerThatThrowsHarmsNobody) {
  client_.scripts.push_back({{added(pod("x", 1)), bookmark(5, true), added(pod("y", 6))}});
  WatchCache cache(client_, kPods);
  unsigned told = 0;
  cache.add_handlers({.on_add = [](const Object&) { fail(Code::internal, "oh"); }});
  cache.add_handlers({.on_add = [&](const Object&) { ++told; }});

  cache.start();
  client_.wait_silent();

  EXPECT_EQ(told, 2U);
  EXPECT_EQ(cache.list().size(), 2U);
}

TEST_F(WatchCacheTest, AHandlerSeesWhatItIsToldOf) {
  client_.scripts.push_back({{bookmark(5, true), added(pod("x", 6)), deleted(pod("x", 7))}});
  WatchCache cache(client_, kPods);
  Words seen;
  cache.add_handlers({
      .on_add = [&](const Object&) { seen.push_back(cache.find("a", "x") ? "here" : "?"); },
      .on_delete = [&](const Object&) { seen.push_back(cache.find("a", "x") ? "?" : "gone"); },
  });

  cache.start();
  client_.wait_silent();

  EXPECT_EQ(seen, (Words{"here", "gone"}));
}

TEST_F(WatchCacheTest, WaitingForItEnds) {
  WatchCache cache(client_, kPods);
  EXPECT_FALSE(cache.wait_synced(1ms));
  std::stop_source source;
  source.request_stop();
  EXPECT_FALSE(cache.wait_synced(1h, source.get_token()));
  cache.start();
  client_.wait_silent();
  EXPECT_FALSE(cache.is_synced());
  cache.stop();
  cache.stop();
}

}  // namespace
}  // namespace hearth::client
