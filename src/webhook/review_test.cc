#include "webhook/review.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/json.h"

namespace hearth::webhook {
namespace {

using model::Json;
using model::JsonArray;

constexpr std::string_view kOld = R"({"apiVersion":"agents.x-k8s.io/v1alpha1","kind":"Sandbox",
  "metadata":{"name":"box","namespace":"team","uid":"u-1","resourceVersion":"7","generation":3,
    "creationTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"b"},"finalizers":["x.test/y"],
    "managedFields":[{"manager":"kubectl"}],"ownerReferences":[{"name":"o"}]},
  "spec":{"replicas":0,"podTemplate":{"spec":{"containers":[]}}}})";

std::string review(std::string_view desired, std::string_view objects) {
  return fmt::format(R"({{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview",
    "request":{{"uid":"r-1","desiredAPIVersion":"{}","objects":{}}}}})",
                     desired, objects);
}

Json response_to(const std::string& text) {
  const Json answer = model::parse_json(answer_review(text)).value;
  EXPECT_EQ(model::text_at(answer, {"apiVersion"}), "apiextensions.k8s.io/v1");
  EXPECT_EQ(model::text_at(answer, {"kind"}), "ConversionReview");
  EXPECT_EQ(model::text_at(answer, {"response", "uid"}), "r-1");
  return *model::find(answer, {"response"});
}

Json convert(std::string_view desired, std::string_view object) {
  const Json response = response_to(review(desired, fmt::format("[{}]", object)));
  EXPECT_EQ(model::text_at(response, {"result", "status"}), "Success") << model::to_text(response);
  const JsonArray* converted = model::array_at(response, {"convertedObjects"});
  return converted && converted->size() == 1 ? converted->front() : Json();
}

// The sentence of a review that failed.
std::string failure(std::string_view desired, std::string_view objects) {
  const Json response = response_to(review(desired, objects));
  EXPECT_EQ(model::text_at(response, {"result", "status"}), "Failed");
  EXPECT_TRUE(model::array_at(response, {"convertedObjects"})->empty());
  return std::string(model::text_at(response, {"result", "message"}));
}

TEST(Review, ConvertsThereAndBack) {
  const Json beta = convert("agents.x-k8s.io/v1beta1", kOld);
  EXPECT_EQ(model::text_at(beta, {"apiVersion"}), "agents.x-k8s.io/v1beta1");
  EXPECT_EQ(model::text_at(beta, {"spec", "operatingMode"}), "Suspended");
  EXPECT_FALSE(model::find(beta, {"spec", "replicas"}));

  const Json alpha = convert("agents.x-k8s.io/v1alpha1", model::to_text(beta));
  EXPECT_TRUE(model::is_same(alpha, model::parse_json(kOld).value)) << model::to_text(alpha);
}

TEST(Review, ChangesNothingOfMetadataButAnnotations) {
  Json beta = convert("agents.x-k8s.io/v1beta1", kOld);
  EXPECT_TRUE(model::object_at(beta, {"metadata", "annotations"}));
  model::erase_at(beta, {"metadata", "annotations"});
  EXPECT_TRUE(model::is_same(*model::find(beta, {"metadata"}),
                             *model::find(model::parse_json(kOld).value, {"metadata"})));
}

TEST(Review, KeepsTheOrderAndWhatNeedsNoConversion) {
  const std::string objects = fmt::format(
      R"([{},{{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{{"name":"new"}},
        "spec":{{"operatingMode":"Running"}}}}])",
      kOld);
  const Json response = response_to(review("agents.x-k8s.io/v1beta1", objects));
  const JsonArray& converted = *model::array_at(response, {"convertedObjects"});
  ASSERT_EQ(converted.size(), 2U);
  EXPECT_EQ(model::text_at(converted[0], {"metadata", "name"}), "box");
  EXPECT_EQ(model::text_at(converted[1], {"metadata", "name"}), "new");
  EXPECT_FALSE(model::find(converted[1], {"metadata", "annotations"}));
}

TEST(Review, KnowsEveryKind) {
  for (const std::string kind : {"SandboxClaim", "SandboxTemplate", "SandboxWarmPool"}) {
    const Json beta = convert("extensions.agents.x-k8s.io/v1beta1",
                              fmt::format(R"({{"apiVersion":"extensions.agents.x-k8s.io/v1alpha1",
                                "kind":"{}","metadata":{{"name":"x"}},"spec":{{}}}})",
                                          kind));
    EXPECT_EQ(model::text_at(beta, {"kind"}), kind);
    EXPECT_EQ(model::text_at(beta, {"apiVersion"}), "extensions.agents.x-k8s.io/v1beta1");
  }
}

TEST(Review, SaysWhichObjectIsWrongAndWhy) {
  const std::string_view to = "agents.x-k8s.io/v1alpha1";
  const auto one = [](std::string_view rest) {
    return fmt::format(R"([{{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",{}}}])", rest);
  };
  EXPECT_EQ(
      failure("extensions.agents.x-k8s.io/v1beta1",
              R"([{"apiVersion":"extensions.agents.x-k8s.io/v1alpha1","kind":"SandboxTemplate",
      "metadata":{"name":"t","namespace":"team","annotations":
      {"api.agents.x-k8s.io/v1beta1-volume-claim-templates-policy":"Often"}}}])"),
      "SandboxTemplate 'team/t': invalid VolumeClaimTemplatesPolicy annotation value: "
      "\"Often\"");
  EXPECT_EQ(failure(to, "[3]"), "object 0: it is no object");
  EXPECT_EQ(failure(to, one(R"("metadata":7)")), "object 0: metadata is no object");
  EXPECT_EQ(failure(to, one(R"("metadata":{"name":"x","annotations":"y"})")),
            "Sandbox 'x': metadata.annotations is no object");
  EXPECT_EQ(failure(to, one(R"("metadata":{"name":"x"},"spec":[])")),
            "Sandbox 'x': spec is no object");
  EXPECT_EQ(failure(to, one(R"("metadata":{"name":"x"},"status":"fine")")),
            "Sandbox 'x': status is no object");
  EXPECT_EQ(failure(to, R"([{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}])"),
            "Pod 'p': 'v1' is no version that is converted; v1alpha1 and v1beta1 are");
  EXPECT_EQ(failure(to, R"([{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Pod","metadata":{}}])"),
            "object 0: there is no conversion for kind 'Pod' of group 'agents.x-k8s.io'");
  EXPECT_EQ(failure("extensions.agents.x-k8s.io/v1alpha1", one(R"("metadata":{"name":"x"})")),
            "Sandbox 'x': it cannot become one of group 'extensions.agents.x-k8s.io'");
  EXPECT_EQ(failure("agents.x-k8s.io/v2", "[]"),
            "'agents.x-k8s.io/v2' is no version that is converted; v1alpha1 and v1beta1 are");
  EXPECT_EQ(failure(to, "{}"), "the review has no list of objects");
}

TEST(Review, OneBadObjectFailsAllOfThem) {
  EXPECT_EQ(failure("agents.x-k8s.io/v1beta1", fmt::format("[{},null]", kOld)),
            "object 1: it is no object");
}

TEST(Review, AMessageIsNoLongerThanPeopleRead) {
  const std::string name(100'000, 'x');
  const std::string said = failure(
      "agents.x-k8s.io/v1beta1",
      fmt::format(R"([{{"apiVersion":"a/v1beta1","kind":"Sandbox","metadata":{{"name":"{}"}}}}])",
                  name));
  EXPECT_LE(said.size(), 1024U);
}

TEST(Review, WhatIsNoReviewHasNoAnswer) {
  for (
      const std::string_view text :
      {"", "nonsense", "null", "[]", "{}", R"({"apiVersion":"apiextensions.k8s.io/v1"})",
       R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"})",
       R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":7})",
       R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":""}})",
       R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1"}})"})
    try {
      answer_review(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid) << text;
    }
}

}  // namespace
}  // namespace hearth::webhook
