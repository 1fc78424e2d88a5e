#include "controllers/claim_status.h"

#include <gtest/gtest.h>

#include "base/time_text.h"
#include "controllers/claim_defaults.h"
#include "controllers/claim_expiry.h"
#include "model/meta.h"

namespace hearth::controllers {
namespace {

Json json(std::string_view text) {
  return model::parse_json(text).value;
}

const Time kNow = *parse_rfc3339("2027-01-01T00:00:00Z");

Json claim_json(std::string_view spec = "{}") {
  Json made = json(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxClaim",
    "metadata":{"name":"c","namespace":"n","uid":"u-1","generation":3,"resourceVersion":"7",
      "labels":{"agents.x-k8s.io/created-by":"python-client"},
      "annotations":{"opentelemetry.io/trace-context":"{}"}},
    "spec":{"warmPoolRef":{"name":"pool"}}})");
  const Json parts = json(spec);
  for (const auto& [key, value] : parts.as_object()) made.at("spec").as_object()[key] = value;
  return made;
}

std::string expiry(std::string_view lifecycle, std::string_view finished = {},
                   std::string_view renewed = {}) {
  Json claim = claim_json(R"({"lifecycle":)" + std::string(lifecycle) + "}");
  claim.at("metadata").as_object()["creationTimestamp"] = "2027-01-01T00:00:00Z";
  if (!renewed.empty())
    claim.at_pointer("/metadata/annotations").as_object()[kRenewedAnnotation] = renewed;
  if (!finished.empty())
    claim.as_object()["status"] =
        json(R"({"conditions":[{"type":"Finished","status":"True","lastTransitionTime":")" +
             std::string(finished) + R"("}]})");
  const auto at = expiry_of(claim, lifecycle_of(claim, nullptr));
  return at ? format_rfc3339(*at) : "never";
}

TEST(ClaimExpiry, IsTheEarliestOfItsEnds) {
  EXPECT_EQ(expiry("null"), "never");
  EXPECT_EQ(expiry("{}"), "never");
  EXPECT_EQ(expiry(R"({"shutdownTime":"2027-01-01T02:00:00Z"})"), "2027-01-01T02:00:00Z");
  EXPECT_EQ(expiry(R"({"ttlSecondsAfterFinished":60})"), "never");
  EXPECT_EQ(expiry(R"({"ttlSecondsAfterFinished":60})", "2027-01-01T01:00:00Z"),
            "2027-01-01T01:01:00Z");
  EXPECT_EQ(expiry(R"({"ttlSecondsAfterFinished":60,"shutdownTime":"2027-01-01T00:30:00Z"})",
                   "2027-01-01T01:00:00Z"),
            "2027-01-01T00:30:00Z");
  EXPECT_EQ(expiry(R"({"leaseDurationSeconds":30})"), "2027-01-01T00:00:30Z");
  EXPECT_EQ(expiry(R"({"leaseDurationSeconds":30})", {}, "2027-01-01T00:05:00Z"),
            "2027-01-01T00:05:30Z");
  EXPECT_EQ(expiry(R"({"leaseDurationSeconds":30})", {}, "soon"), "2027-01-01T00:00:30Z");
  EXPECT_EQ(expiry(R"({"leaseDurationSeconds":30})", {}, "1999-01-01T00:00:00Z"),
            "2027-01-01T00:00:30Z");
  EXPECT_TRUE(is_over(kNow, kNow));
  EXPECT_FALSE(is_over(kNow + Duration(1), kNow));
  EXPECT_FALSE(is_over(std::nullopt, kNow));
  EXPECT_EQ(shutdown_policy_of(std::nullopt), "Retain");
}

std::string ready_text(const Json& status) {
  const Json holder = model::JsonObject{{"status", status}};
  const Json* ready = model::find_condition(holder, "Ready");
  return std::string(model::text_at(*ready, {"status"})) + " " +
         std::string(model::text_at(*ready, {"reason"})) + ": " +
         std::string(model::text_at(*ready, {"message"}));
}

Json sandbox_json(std::string_view conditions) {
  return json(R"({"metadata":{"name":"s"},"status":{"podIPs":["10.0.0.9"],"conditions":)" +
              std::string(conditions) + "}}");
}

TEST(ClaimStatus, CopiesWhatTheSandboxSays) {
  const Json sandbox =
      sandbox_json(R"([{"type":"Ready","status":"True","reason":"DependenciesReady",
    "message":"Pod is Ready","observedGeneration":9,"lastTransitionTime":"2026-12-31T00:00:00Z"},
    {"type":"Finished","status":"True","reason":"PodSucceeded","message":"m","observedGeneration":8,
    "lastTransitionTime":"2026-12-30T00:00:00Z"}])");
  const Json status = claim_status(claim_json(), {.sandbox = &sandbox}, kNow);
  EXPECT_EQ(model::to_text(status),
            R"({"conditions":[{"type":"Finished","status":"True","observedGeneration":8,)"
            R"("lastTransitionTime":"2026-12-30T00:00:00Z","reason":"PodSucceeded","message":"m"},)"
            R"({"type":"Ready","status":"True","observedGeneration":3,)"
            R"("lastTransitionTime":"2026-12-31T00:00:00Z","reason":"DependenciesReady",)"
            R"("message":"Pod is Ready"}],"sandbox":{"name":"s","podIPs":["10.0.0.9"]}})");
}

TEST(ClaimStatus, SaysWhyThereIsNoSandbox) {
  const auto text = [](const ClaimView& view) {
    return ready_text(claim_status(claim_json(), view, kNow));
  };
  EXPECT_EQ(text({}), "False SandboxMissing: Sandbox does not exist");
  EXPECT_EQ(text({.is_expired = true}),
            "False ClaimExpired: Claim expired. Sandbox cleanup initiated.");
  EXPECT_EQ(text({.is_expired = true, .reason = "R", .message = "m"}), "False R: m");
  const Json silent = sandbox_json("[]");
  EXPECT_EQ(text({.sandbox = &silent}), "False SandboxNotReady: Sandbox is not ready");
  const Json expired = sandbox_json(R"([{"type":"Ready","status":"False","reason":"SandboxExpired",
    "message":"Sandbox has expired"}])");
  EXPECT_EQ(text({.sandbox = &expired}),
            "False SandboxExpired: Underlying Sandbox resource has expired independently of the "
            "Claim.");
}

TEST(ClaimStatus, AProblemDoesNotTakeTheSandboxAway) {
  Json claim = claim_json();
  claim.as_object()["status"] = json(
      R"({"sandbox":{"name":"s","podIPs":["1"]},"conditions":[{"type":"Finished","status":"True",
        "reason":"PodFailed","message":"m","lastTransitionTime":"2026-12-30T00:00:00Z"}]})");
  const auto has_sandbox = [&](const ClaimView& view) {
    return model::find(claim_status(claim, view, kNow), {"sandbox"}) != nullptr;
  };
  EXPECT_TRUE(has_sandbox({.reason = "ReconcilerError", .message = "m"}));
  EXPECT_FALSE(has_sandbox({.reason = "ClaimExpired", .message = "m", .is_foreign = true}));
  EXPECT_FALSE(has_sandbox({}));
  // How it ended is still known when the sandbox of an ended claim is gone, and not otherwise.
  const auto conditions = [&](const ClaimView& view) {
    return model::array_at(claim_status(claim, view, kNow), {"conditions"})->size();
  };
  EXPECT_EQ(conditions({.is_expired = true}), 2U);
  EXPECT_EQ(conditions({}), 1U);
}

TEST(ClaimStatus, IsPatchedByItsChanges) {
  Json claim = claim_json();
  claim.as_object()["status"] = json(R"({"sandbox":{"name":"s","podIPs":["1"]},"conditions":[]})");
  EXPECT_TRUE(status_patch(claim, claim.at("status")).is_null());
  EXPECT_EQ(
      model::to_text(status_patch(claim, json(R"({"sandbox":{"name":"s"},"conditions":[]})"))),
      R"({"metadata":{"resourceVersion":"7"},"status":{"sandbox":{"podIPs":null}}})");
  EXPECT_EQ(model::to_text(status_patch(claim, json(R"({"conditions":[]})"))),
            R"({"metadata":{"resourceVersion":"7"},"status":{"sandbox":null}})");
}

}  // namespace
}  // namespace hearth::controllers
