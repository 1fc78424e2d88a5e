#include <gtest/gtest.h>

#include "base/error.h"
#include "model/meta.h"
#include "tracing/tracer.h"

namespace hearth::tracing {
namespace {

using model::Json;
using model::text_at;

constexpr char kTrace[] = "0af7651916cd43dd8448eb211c80319c";
constexpr char kParent[] = "b7ad6b7169203331";

TEST(Context, IsWhatW3cWrites) {
  const auto context = parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  ASSERT_TRUE(context);
  EXPECT_EQ(*context, (Context{.trace_id = kTrace, .span_id = kParent, .is_sampled = true}));
  EXPECT_EQ(to_traceparent(*context), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  EXPECT_FALSE(
      parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")->is_sampled);
  EXPECT_TRUE(parse_traceparent("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-more")
                  ->is_sampled);
  for (const char* wrong : {"", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
                            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
                            "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
    EXPECT_FALSE(parse_traceparent(wrong)) << wrong;
}

TEST(Context, TravelsInAnAnnotation) {
  const Context context{.trace_id = kTrace, .span_id = kParent};
  EXPECT_EQ(to_annotation(context),
            R"({"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})");
  EXPECT_EQ(parse_annotation(to_annotation(context)), context);
  for (const char* wrong : {"", "{", "[]", "7", R"({"traceparent":7})", R"({"traceparent":"x"})"})
    EXPECT_FALSE(parse_annotation(wrong)) << wrong;
}

// What a collector would get, when the tracer is gone.
class Spans : public testing::Test {
 protected:
  void start() {
    tracer_ = std::make_unique<Tracer>(clock_, Tracer::Options{.service = "us"},
                                       [this](const std::string& body) {
                                         if (is_away_) fail(Code::unavailable, "nobody there");
                                         bodies_.push_back(model::parse_json(body).value);
                                       });
  }
  model::JsonArray ended() {
    tracer_.reset();
    model::JsonArray all;
    for (const Json& body : bodies_) {
      const Json& resource = body.at("resourceSpans").at(0);
      EXPECT_EQ(model::to_text(resource.at("resource")),
                R"({"attributes":[{"key":"service.name","value":{"stringValue":"us"}}]})");
      for (const Json& span : resource.at("scopeSpans").at(0).at("spans").as_array())
        all.push_back(span);
    }
    return all;
  }

  ManualClock clock_;
  bool is_away_ = false;
  std::vector<Json> bodies_;
  std::unique_ptr<Tracer> tracer_;
};

TEST_F(Spans, SayWhatWasDoneAndBecauseOfWhat) {
  start();
  {
    Span outer(tracer_.get(), "outer", Context{.trace_id = kTrace, .span_id = kParent});
    outer.set("box", "b");
    Span inner(tracer_.get(), "inner", outer.context());
    clock_.advance(std::chrono::milliseconds(3));
    inner.event("seen", {{"phase", "Running"}});
    inner.fail("no more");
  }
  const model::JsonArray all = ended();
  ASSERT_EQ(all.size(), 2U);
  const Json& inner = all[0];
  const Json& outer = all[1];
  EXPECT_EQ(text_at(outer, {"traceId"}), kTrace);
  EXPECT_EQ(text_at(outer, {"parentSpanId"}), kParent);
  EXPECT_EQ(text_at(inner, {"traceId"}), kTrace);
  EXPECT_EQ(text_at(inner, {"parentSpanId"}), text_at(outer, {"spanId"}));
  EXPECT_EQ(text_at(inner, {"startTimeUnixNano"}), "1700000000000000000");
  EXPECT_EQ(text_at(inner, {"endTimeUnixNano"}), "1700000000003000000");
  EXPECT_EQ(model::to_text(outer.at("attributes")),
            R"([{"key":"box","value":{"stringValue":"b"}}])");
  EXPECT_EQ(text_at(inner.at("events").at(0), {"name"}), "seen");
  EXPECT_EQ(model::to_text(inner.at("status")), R"({"code":2,"message":"no more"})");
}

TEST_F(Spans, BeginATraceOfTheirOwn) {
  start();
  std::optional<Context> first;
  {
    const Span span(tracer_.get(), "one");
    first = span.context();
    const Span another(tracer_.get(), "two");
    EXPECT_NE(another.context()->trace_id, first->trace_id);
  }
  EXPECT_TRUE(parse_traceparent(to_traceparent(*first)));
  EXPECT_EQ(ended().size(), 2U);
}

TEST_F(Spans, WhatNobodySamplesIsNotSentAndStaysSo) {
  start();
  {
    const Span span(tracer_.get(), "one",
                    Context{.trace_id = kTrace, .span_id = kParent, .is_sampled = false});
    EXPECT_EQ(span.context()->trace_id, kTrace);
    EXPECT_FALSE(span.context()->is_sampled);
    const Span below(tracer_.get(), "two", span.context());
  }
  EXPECT_TRUE(ended().empty());
}

TEST_F(Spans, ACollectorThatIsAwayIsNoTrouble) {
  start();
  is_away_ = true;
  for (int i = 0; i < 10000; ++i) const Span span(tracer_.get(), "lost");
  EXPECT_TRUE(ended().empty());
}

TEST(Span, IsNothingWithoutATracer) {
  Span span(nullptr, "one", Context{.trace_id = kTrace, .span_id = kParent});
  span.set("a", "b");
  span.event("c", {});
  span.fail("d");
  EXPECT_FALSE(span.context());
}

}  // namespace
}  // namespace hearth::tracing
