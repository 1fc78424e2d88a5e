#include "controllers/claim_defaults.h"

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/kinds.h"

namespace hearth::controllers {
namespace {

using apiserver::json;

constexpr const char* kClaim = R"({"metadata":{"creationTimestamp":"2026-05-01T10:00:00Z"}})";

Json pool_with(std::string_view defaults) {
  return json(R"({"spec":{"claimDefaults":{"lifecycle":)" + std::string(defaults) + "}}}");
}

TEST(ClaimDefaults, AClaimsOwnLifecycleCounts) {
  const Json claim = json(R"({"spec":{"lifecycle":{"shutdownPolicy":"Retain"}}})");
  EXPECT_EQ(model::to_text(*lifecycle_of(claim, pool_with(R"({"ttlSecondsAfterFinished":5})"))),
            R"({"shutdownPolicy":"Retain"})");
}

TEST(ClaimDefaults, ThePoolsCountsForAClaimWithoutOne) {
  const Json pool = pool_with(
      R"({"shutdownAfterSeconds":90,"ttlSecondsAfterFinished":5,"shutdownPolicy":"Delete"})");
  const Json lifecycle = *lifecycle_of(json(kClaim), pool);
  EXPECT_TRUE(model::is_same(lifecycle, json(R"({"shutdownTime":"2026-05-01T10:01:30Z",
                "ttlSecondsAfterFinished":5,"shutdownPolicy":"Delete"})")))
      << model::to_text(lifecycle);
}

TEST(ClaimDefaults, NobodySaysAnything) {
  EXPECT_FALSE(lifecycle_of(json(kClaim), json("{}")));
  EXPECT_FALSE(lifecycle_of(json(kClaim), pool_with("7")));
}

TEST(ClaimDefaults, TimesThatMakeNoSenseAreLeftOut) {
  for (const char* seconds : {"-1", "0", "9223372036854775807", "\"x\""}) {
    const Json pool = pool_with(R"({"shutdownAfterSeconds":)" + std::string(seconds) + "}");
    EXPECT_EQ(model::to_text(*lifecycle_of(json(kClaim), pool)), "{}") << seconds;
  }
  EXPECT_EQ(model::to_text(*lifecycle_of(json("{}"), pool_with(R"({"shutdownAfterSeconds":9})"))),
            "{}");
}

TEST(ClaimDefaults, TheServerKeepsThemAndFillsThemIn) {
  apiserver::TestServer server;
  const auto make = [&](std::string_view lifecycle) {
    return server.client().create(
        client::kSandboxWarmPools,
        json(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool",
          "metadata":{"namespace":"default","generateName":"p-"},
          "spec":{"sandboxTemplateRef":{"name":"t"},"claimDefaults":{"lifecycle":)" +
             std::string(lifecycle) + "}}}"));
  };
  const Json pool = make(R"({"shutdownAfterSeconds":3600})");
  EXPECT_EQ(model::text_at(pool, {"spec", "claimDefaults", "lifecycle", "shutdownPolicy"}),
            "Delete");
  EXPECT_EQ(apiserver::refusal([&] { make(R"({"shutdownAfterSeconds":0})"); }).code, 422);
}

}  // namespace
}  // namespace hearth::controllers
