#include "reconcile/event_recorder.h"

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/kinds.h"

namespace hearth::reconcile {
namespace {

using namespace std::chrono_literals;
using apiserver::json;
using apiserver::TestServer;
using model::Json;

class EventRecorderTest : public testing::Test {
 protected:
  std::vector<Json> events(const std::string& ns = "default") {
    std::vector<Json> found = server_.client().list(client::kEvents, {.ns = ns}).items;
    std::erase_if(found, [](const Json& event) {
      return model::text_at(event, {"reportingController"}) != "tester";
    });
    return found;
  }
  EventRecorderOptions options() const { return {.controller = "tester", .instance = "tester-1"}; }

  TestServer server_;
  ManualClock clock_;
  const Json pod_ = json(R"({"apiVersion":"v1","kind":"Pod","metadata":{
      "name":"p","namespace":"default","uid":"u-1","resourceVersion":"7","labels":{"a":"b"}},
      "spec":{"secret":"x"}})");
};

TEST_F(EventRecorderTest, SaysWhoDidWhatToWhom) {
  EventRecorder recorder(server_.client(), clock_, options());
  recorder.record(pod_, EventType::warning, "Failed", "Starting", "it broke");
  recorder.flush();
  ASSERT_EQ(events().size(), 1U);
  const Json event = events().front();
  EXPECT_EQ(model::text_at(event, {"reason"}), "Failed");
  EXPECT_EQ(model::text_at(event, {"action"}), "Starting");
  EXPECT_EQ(model::text_at(event, {"note"}), "it broke");
  EXPECT_EQ(model::text_at(event, {"type"}), "Warning");
  EXPECT_EQ(model::text_at(event, {"reportingInstance"}), "tester-1");
  EXPECT_EQ(model::text_at(event, {"eventTime"}), "2023-11-14T22:13:20.000000Z");
  EXPECT_EQ(*model::find(event, {"regarding"}),
            json(R"({"apiVersion":"v1","kind":"Pod","name":"p","namespace":"default",
                     "uid":"u-1","resourceVersion":"7"})"));
  EXPECT_EQ(recorder.dropped(), 0U);
}

TEST_F(EventRecorderTest, TheSameAgainIsASeries) {
  EventRecorder recorder(server_.client(), clock_, options());
  for (int i = 0; i < 3; ++i) {
    recorder.record(pod_, EventType::normal, "Waiting", "Waiting", "still");
    clock_.advance(1min);
  }
  recorder.record(pod_, EventType::normal, "Waiting", "Waiting", "something else");
  recorder.flush();
  ASSERT_EQ(events().size(), 2U);
  std::vector<Json> all = events();
  if (!model::find(all.front(), {"series"})) std::swap(all.front(), all.back());
  EXPECT_EQ(model::number_at(all.front(), {"series", "count"}), 3);
  EXPECT_EQ(model::text_at(all.front(), {"series", "lastObservedTime"}),
            "2023-11-14T22:15:20.000000Z");
  EXPECT_FALSE(model::find(all.back(), {"series"}));
}

TEST_F(EventRecorderTest, AfterALongTimeItIsAnotherEvent) {
  EventRecorder recorder(server_.client(), clock_, options());
  recorder.record(pod_, EventType::normal, "Waiting", "Waiting", "still");
  recorder.flush();
  clock_.advance(10min);
  recorder.record(pod_, EventType::normal, "Waiting", "Waiting", "still");
  recorder.flush();
  EXPECT_EQ(events().size(), 2U);
}

TEST_F(EventRecorderTest, ASeriesGoesOnAsLongAsItIsHeardOf) {
  EventRecorder recorder(server_.client(), clock_, options());
  for (int i = 0; i < 4; ++i) {
    recorder.record(pod_, EventType::normal, "Waiting", "Waiting", "still");
    recorder.flush();
    clock_.advance(4min);
  }
  EXPECT_EQ(events().size(), 1U);
}

TEST_F(EventRecorderTest, ASeriesWhoseFirstIsGoneBeginsAnew) {
  EventRecorder recorder(server_.client(), clock_, options());
  recorder.record(pod_, EventType::normal, "Waiting", "Waiting", "still");
  recorder.flush();
  const std::string name(model::text_at(events().front(), {"metadata", "name"}));
  server_.client().remove(client::kEvents, "default", name);
  recorder.record(pod_, EventType::normal, "Waiting", "Waiting", "still");
  recorder.flush();
  EXPECT_EQ(events().size(), 1U);
  EXPECT_EQ(recorder.dropped(), 0U);
}

TEST_F(EventRecorderTest, WhatComesTooFastIsDropped) {
  EventRecorderOptions few = options();
  few.burst = 3;
  few.per_second = 2;
  EventRecorder recorder(server_.client(), clock_, few);
  for (int i = 0; i < 5; ++i) {
    recorder.record(pod_, EventType::normal, "A", "A", std::to_string(i));
  }
  EXPECT_EQ(recorder.dropped(), 2U);
  clock_.advance(1s);
  for (int i = 5; i < 10; ++i) {
    recorder.record(pod_, EventType::normal, "A", "A", std::to_string(i));
  }
  recorder.flush();
  EXPECT_EQ(recorder.dropped(), 5U);
  EXPECT_EQ(events().size(), 5U);
}

TEST_F(EventRecorderTest, SilenceIsSilent) {
  EventRecorderOptions silent = options();
  silent.is_silent = true;
  EventRecorder recorder(server_.client(), clock_, silent);
  recorder.record(pod_, EventType::normal, "A", "A", "a");
  recorder.flush();
  EXPECT_TRUE(events().empty());
  EXPECT_EQ(recorder.dropped(), 0U);
}

TEST_F(EventRecorderTest, WhatIsRefusedIsDroppedAndHoldsUpNothing) {
  EventRecorder recorder(server_.client(), clock_, options());
  Json nowhere = pod_;
  model::make_object_at(nowhere, {"metadata"})["namespace"] = "no-such-namespace";
  recorder.record(nowhere, EventType::normal, "A", "A", "a");
  recorder.record(pod_, EventType::normal, "A", "A", "a");
  recorder.flush();
  EXPECT_EQ(recorder.dropped(), 1U);
  EXPECT_EQ(events().size(), 1U);
}

TEST_F(EventRecorderTest, LongTextsAreCutBetweenCharacters) {
  EventRecorder recorder(server_.client(), clock_, options());
  std::string note(1023, 'x');
  note += "\xc3\xa9 and more";
  recorder.record(pod_, EventType::normal, std::string(200, 'r'), std::string(200, 'a'), note);
  recorder.flush();
  ASSERT_EQ(events().size(), 1U);
  EXPECT_EQ(model::text_at(events().front(), {"note"}), std::string(1023, 'x'));
  EXPECT_EQ(recorder.dropped(), 0U);
}

TEST_F(EventRecorderTest, ObjectsOfTheWholeClusterAreToldOfInDefault) {
  EventRecorder recorder(server_.client(), clock_, options());
  recorder.record(json(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}})"),
                  EventType::normal, "A", "A", "a");
  recorder.flush();
  EXPECT_EQ(events().size(), 1U);
}

TEST_F(EventRecorderTest, WhatWaitsIsWrittenBeforeItGoes) {
  {
    EventRecorder recorder(server_.client(), clock_, options());
    for (int i = 0; i < 20; ++i) {
      recorder.record(pod_, EventType::normal, "A", "A", std::to_string(i));
    }
  }
  EXPECT_EQ(events().size(), 20U);
}

}  // namespace
}  // namespace hearth::reconcile
