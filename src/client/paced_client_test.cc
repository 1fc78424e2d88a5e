#include "client/paced_client.h"

#include <gtest/gtest.h>

#include "client/silent_client_internal.h"

namespace hearth::client {
namespace {

using namespace std::chrono_literals;

const ResourceId kPods{"", "v1", "pods"};

Duration time_of(PacedClient& client, int calls) {
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) client.get(kPods, "a", "b");
  return std::chrono::steady_clock::now() - began;
}

TEST(PacedClient, ABurstIsAtOnceAndTheRestInTurn) {
  SilentClient inner;
  PacedClient client(inner, 100, 5);
  // Five at once, then five at ten milliseconds each.
  EXPECT_GE(time_of(client, 10), 49ms);
}

TEST(PacedClient, UpToTheBurstNobodyWaits) {
  SilentClient inner;
  PacedClient client(inner, 0.01, 20);
  EXPECT_LT(time_of(client, 20), 10s);
}

// Whenever the machine was started: this credit is older than any.
TEST(PacedClient, ABurstMayBeWorthMoreTimeThanTheMachineIsUp) {
  SilentClient inner;
  PacedClient client(inner, 1e-6, 20);
  EXPECT_LT(time_of(client, 20), 10s);
}

}  // namespace
}  // namespace hearth::client
