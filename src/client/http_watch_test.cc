#include <future>
#include <latch>
#include <stdexcept>

#include "base/guarded.h"
#include "client/fake_server_internal.h"
#include "client/watch_cache.h"

namespace hearth::client {
namespace {

using namespace std::chrono_literals;

const ResourceId kPods{"", "v1", "pods"};

std::string line(const std::string& type, const std::string& object) {
  return fmt::format(R"({{"type":"{}","object":{}}})", type, object) + "\n";
}

std::string bookmark(int version, bool is_initial_end = false) {
  return line(
      "BOOKMARK",
      fmt::format(R"({{"kind":"Pod","metadata":{{"resourceVersion":"{}"{}}}}})", version,
                  is_initial_end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : ""));
}

const std::string kExpired =
    line("ERROR", R"({"kind":"Status","code":410,"reason":"Expired","message":"too old"})");

using HttpWatchTest = HttpClientTest;

TEST_F(HttpWatchTest, WatchesLineByLine) {
  const std::string added = line("ADDED", pod_text("x", 1));
  server_.say({.pieces = {added.substr(0, 10), added.substr(10) + "\n" + bookmark(2), "{\"half"}});

  EXPECT_EQ(watch({.ns = "a", .resource_version = "0"}), WatchEnd::closed);

  EXPECT_EQ(target(),
            "/api/v1/namespaces/a/pods?watch=true&resourceVersion=0&"
            "allowWatchBookmarks=true&timeoutSeconds=300");
  ASSERT_EQ(events_.size(), 2U);
  EXPECT_EQ(events_[0].kind, EventKind::added);
  EXPECT_EQ(events_[1].kind, EventKind::bookmark);
}

TEST_F(HttpWatchTest, ATornWatchIsClosed) {
  server_.say(
      {.pieces = {line("ADDED", pod_text("x", 1)), "{\"ty"}, .then = FakeAnswer::Then::tear});
  server_.say({.then = FakeAnswer::Then::tear});
  EXPECT_EQ(watch(), WatchEnd::closed);
  EXPECT_EQ(events_.size(), 1U);
  EXPECT_EQ(watch(), WatchEnd::closed);
}

TEST_F(HttpWatchTest, AWatchExpires) {
  server_.say(
      {.pieces = {line("ADDED", pod_text("x", 1)) + kExpired + line("ADDED", pod_text("y", 2))},
       .then = FakeAnswer::Then::stay});
  server_.say({.status = 410, .body = R"({"kind":"Status","code":410})"});
  EXPECT_EQ(watch(), WatchEnd::expired);
  EXPECT_EQ(events_.size(), 1U);
  EXPECT_EQ(watch(), WatchEnd::expired);
}

TEST_F(HttpWatchTest, AWatchIsRefused) {
  server_.say({.status = 422, .body = R"({"kind":"Status","reason":"Invalid","message":"no"})"});
  server_.say({.status = 429, .body = "later", .headers = {{"Retry-After", "7"}}});
  EXPECT_EQ(refusal([&] { watch(); }).reason, "Invalid");
  EXPECT_EQ(refusal([&] { watch(); }).retry_after_seconds, 7);
  server_.stop();
  EXPECT_EQ(failure([&] { watch(); }), Code::unavailable);
}

TEST_F(HttpWatchTest, AWatchThatSaysNonsenseFails) {
  server_.say({.pieces = {"garbage\n"}, .then = FakeAnswer::Then::stay});
  EXPECT_EQ(failure([&] { watch(); }), Code::invalid);
  server_.say({.pieces = {line("ERROR", R"({"code":500,"message":"oh"})")}});
  EXPECT_EQ(refusal([&] { watch(); }).message, "oh");
}

TEST_F(HttpWatchTest, ALineHasABound) {
  options_.most_event_bytes = 1000;
  server_.say(
      {.pieces = {std::string(600, 'x'), std::string(600, 'x')}, .then = FakeAnswer::Then::stay});
  EXPECT_EQ(failure([&] { watch(); }), Code::exhausted);
}

TEST_F(HttpWatchTest, WhatAHandlerThrowsComesOut) {
  server_.say({.pieces = {line("ADDED", pod_text("x", 1))}, .then = FakeAnswer::Then::stay});
  const auto handler = [](const Event&) { fail(Code::unavailable, "mine"); };
  try {
    client().watch(kPods, {}, handler, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "mine");
  }
  const auto other = [](const Event&) { throw std::runtime_error("not ours"); };
  EXPECT_THROW(client().watch(kPods, {}, other, {}), std::runtime_error);
}

TEST_F(HttpWatchTest, AWatchStopsAtOnce) {
  server_.say({.pieces = {line("ADDED", pod_text("x", 1))}, .then = FakeAnswer::Then::stay});
  std::stop_source source;
  std::latch heard{1};
  auto end = std::async(std::launch::async, [&] {
    return client().watch(kPods, {}, [&](const Event&) { heard.count_down(); }, source.get_token());
  });
  heard.wait();

  source.request_stop();

  EXPECT_EQ(end.get(), WatchEnd::stopped);
}

// The cache over a server that does everything wrong once.
TEST_F(HttpWatchTest, AWatchCacheSurvivesAllOfIt) {
  const std::string initial = line("ADDED", pod_text("x", 1)) + bookmark(5, true);
  server_.say({.status = 429, .headers = {{"Retry-After", "0"}}});
  server_.say({.status = 500});
  server_.say({.pieces = {"garbage\n"}});
  server_.say({.body = R"({"kind":"PodList","metadata":{"resourceVersion":"3"},"items":[]})"});
  server_.say(
      {.pieces = {line("ADDED", pod_text("y", 4)), "{\"torn"}, .then = FakeAnswer::Then::tear});
  server_.say({.pieces = {kExpired}});
  server_.say(
      {.pieces = {initial + line("MODIFIED", pod_text("x", 6))}, .then = FakeAnswer::Then::stay});
  WatchCache cache(client(), kPods, {.first_pause = 1ms, .most_pause = 1ms});
  Guarded<std::vector<std::string>> heard;
  std::latch updated{1};
  const auto note = [&](const std::string& what, const Object& object) {
    heard.with([&](auto& all) {
      all.push_back(what + std::string(model::text_at(*object, {"metadata", "name"})));
    });
  };
  cache.add_handlers({.on_add = [&](const Object& now) { note("+", now); },
                      .on_update =
                          [&](const Object&, const Object& now) {
                            note("~", now);
                            updated.count_down();
                          },
                      .on_delete = [&](const Object& last) { note("-", last); }});

  cache.start();
  updated.wait();

  EXPECT_TRUE(cache.is_synced());
  EXPECT_EQ(heard.with([](auto& all) { return all; }),
            (std::vector<std::string>{"+y", "-y", "+x", "~x"}));
  EXPECT_TRUE(cache.find("a", "x"));
  EXPECT_FALSE(cache.find("a", "y"));
}

}  // namespace
}  // namespace hearth::client
