// What controllers tell a tracer, and how a context travels from claim to sandbox.
#include <map>

#include "controllers/claim_testing.h"
#include "controllers/sandbox_testing_internal.h"
#include "controllers/template_reconciler.h"
#include "tracing/tracer.h"

namespace hearth::controllers {
namespace {

using model::text_at;

constexpr char kTrace[] = "0af7651916cd43dd8448eb211c80319c";
constexpr char kAnnotated[] =
    R"({"annotations":{"opentelemetry.io/trace-context":"{\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"}"}})";

// A collector in memory.
class Collector {
 public:
  tracing::Tracer* tracer() { return tracer_.get(); }
  // All spans so far, by name; the tracer is gone afterwards.
  std::multimap<std::string, Json> spans() {
    tracer_.reset();
    std::multimap<std::string, Json> all;
    for (const Json& body : bodies_)
      for (const Json& span : body.at_pointer("/resourceSpans/0/scopeSpans/0/spans").as_array())
        all.emplace(text_at(span, {"name"}), span);
    return all;
  }

 private:
  const SystemClock clock_;
  std::vector<Json> bodies_;  // of the tracer's thread, until it is gone
  std::unique_ptr<tracing::Tracer> tracer_ = std::make_unique<tracing::Tracer>(
      clock_, tracing::Tracer::Options{.service = "test"},
      [this](const std::string& body) { bodies_.push_back(model::parse_json(body).value); });
};

Json only(const std::multimap<std::string, Json>& spans, const std::string& name) {
  EXPECT_EQ(spans.count(name), 1U) << name;
  const auto found = spans.find(name);
  return found == spans.end() ? Json(model::JsonObject()) : found->second;
}

std::string attribute(const Json& span, std::string_view key) {
  if (const auto* attributes = model::array_at(span, {"attributes"}))
    for (const Json& each : *attributes)
      if (text_at(each, {"key"}) == key)
        return std::string(text_at(each, {"value", "stringValue"}));
  return "none";
}

class SandboxTraces : public SandboxReconcilerTest {
 protected:
  SandboxTraces() : SandboxTraces(std::make_unique<Collector>()) {}

  std::unique_ptr<Collector> collector_;

 private:
  explicit SandboxTraces(std::unique_ptr<Collector> collector)
      : SandboxReconcilerTest({.tracer = collector->tracer()}), collector_(std::move(collector)) {}
};

TEST_F(SandboxTraces, APassAndItsSteps) {
  make_sandbox("{}", "{labels: {agents.x-k8s.io/created-by: somebody}}");
  pass();
  const auto context = tracing::context_of(sandbox());
  ASSERT_TRUE(context);
  run_pod();
  pass();
  EXPECT_EQ(tracing::context_of(sandbox()), context) << "it is written once";

  const auto spans = collector_->spans();
  ASSERT_EQ(spans.count("ReconcileSandbox"), 2U);
  const auto passes = spans.equal_range("ReconcileSandbox");
  const Json first = passes.first->second;
  const Json second = std::next(passes.first)->second;
  EXPECT_EQ(text_at(first, {"spanId"}), context->span_id);
  EXPECT_EQ(text_at(second, {"traceId"}), context->trace_id);
  EXPECT_EQ(text_at(second, {"parentSpanId"}), context->span_id);
  EXPECT_EQ(attribute(first, "sandbox.name"), "dev");
  EXPECT_EQ(attribute(first, "sandbox.namespace"), "default");
  EXPECT_EQ(attribute(first, "agents.x-k8s.io/created-by"), "unknown") << "normalised";
  EXPECT_EQ(spans.count("reconcilePVCs"), 2U);
  const auto pods = spans.equal_range("reconcilePod");
  ASSERT_EQ(spans.count("reconcilePod"), 2U);
  EXPECT_EQ(text_at(pods.first->second, {"parentSpanId"}), context->span_id);
  const Json made = pods.first->second.at("events").at(0);
  EXPECT_EQ(text_at(made, {"name"}), "NewPodStatusObserved");
  EXPECT_EQ(attribute(made, "pod.Name"), "dev");
  const Json seen = std::next(pods.first)->second.at("events").at(0);
  EXPECT_EQ(text_at(seen, {"name"}), "ExistingPodStatusObserved");
  EXPECT_EQ(attribute(seen, "pod.Phase"), "Running");
}

TEST_F(SandboxTraces, AFailureIsToldOf) {
  make_sandbox();
  client_.fail_next("create pods", 500);
  failing_pass();
  const Json span = only(collector_->spans(), "ReconcileSandbox");
  EXPECT_EQ(model::number_at(span, {"status", "code"}), 2);
}

TEST(ClaimTraces, AClientsContextReachesTheSandbox) {
  Collector collector;
  {
    ClaimWorld world({.tracer = collector.tracer()});
    world.add_member("pool-a");
    world.add_claim("c", "{}", kAnnotated);
    world.pass();
    EXPECT_EQ(model::annotation_of(world.sandbox("pool-a"), model::kTraceContextAnnotation),
              model::annotation_of(world.claim(), model::kTraceContextAnnotation));
    EXPECT_EQ(tracing::context_of(world.claim())->span_id, "b7ad6b7169203331");
  }
  const Json span = only(collector.spans(), "ReconcileSandboxClaim");
  EXPECT_EQ(text_at(span, {"traceId"}), kTrace);
  EXPECT_EQ(text_at(span, {"parentSpanId"}), "b7ad6b7169203331");
  EXPECT_EQ(attribute(span, "sandbox.claim.name"), "c");
}

TEST(ClaimTraces, ATraceMayBeginWithTheClaim) {
  Collector collector;
  {
    ClaimWorld world({.tracer = collector.tracer()});
    world.add_claim();
    world.pass();  // a cold one, not ready yet
    const auto context = tracing::context_of(world.sandbox("c"));
    ASSERT_TRUE(context);
    world.set_sandbox("c", "10.0.0.1", "True", "DependenciesReady", "Pod is Ready");
    world.pass();
    EXPECT_EQ(tracing::context_of(world.claim()), context) << "written with the others";
  }
  const auto spans = collector.spans();
  ASSERT_GE(spans.count("ReconcileSandboxClaim"), 2U);
  for (const auto& [name, span] : spans)
    EXPECT_EQ(text_at(span, {"traceId"}), text_at(spans.begin()->second, {"traceId"}));
}

TEST(ClaimTraces, NothingIsAnnotatedWithoutATracer) {
  ClaimWorld world;
  world.add_member("pool-a");
  world.add_claim();
  world.pass();
  EXPECT_EQ(model::annotation_of(world.claim(), model::kTraceContextAnnotation), "");
  EXPECT_EQ(model::annotation_of(world.sandbox("pool-a"), model::kTraceContextAnnotation), "");
}

}  // namespace
}  // namespace hearth::controllers
