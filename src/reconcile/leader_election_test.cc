#include "reconcile/leader_election.h"

#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/kinds.h"
#include "client/passing_client.h"

namespace hearth::reconcile {
namespace {

using namespace std::chrono_literals;
using apiserver::TestServer;
using model::Json;

const model::Key kLease{"default", "the-lease"};

// Asks often, and can wait: busy machines lose no lease.
LeaderElectionOptions eager(const std::string& identity) {
  return {.lease = kLease,
          .identity = identity,
          .lease_duration = 60s,
          .renew_deadline = 40s,
          .retry = 5ms};
}

// A candidate on a thread of its own.
class Candidate {
 public:
  Candidate(client::Client& client, const std::string& identity)
      : Candidate(client, eager(identity)) {}
  Candidate(client::Client& client, const LeaderElectionOptions& options)
      : election_(client, options), thread_([this](const std::stop_token& stop) {
          has_kept_ = election_.run(
              [this](const std::stop_token& lost) {
                began_.set_value();
                std::mutex mutex;
                std::unique_lock lock(mutex);
                std::condition_variable_any().wait(lock, lost, [] { return false; });
                ended_.set_value();
              },
              stop);
        }) {}

  bool leads(Duration patience = 30s) {
    return began_seen_.wait_for(patience) == std::future_status::ready;
  }
  bool is_told_to_end() { return ended_seen_.wait_for(30s) == std::future_status::ready; }
  // What run() returned.
  bool stop() {
    thread_.request_stop();
    thread_.join();
    return has_kept_;
  }
  bool join() {
    thread_.join();
    return has_kept_;
  }
  bool is_leader() const { return election_.is_leader(); }
  std::string_view why_lost() const { return election_.why_lost(); }

 private:
  LeaderElection election_;
  std::promise<void> began_;
  std::promise<void> ended_;
  std::future<void> began_seen_ = began_.get_future();
  std::future<void> ended_seen_ = ended_.get_future();
  std::atomic<bool> has_kept_ = false;
  std::jthread thread_;
};

class LeaderElectionTest : public testing::Test {
 protected:
  Json lease() { return server_.client().get(client::kLeases, kLease.ns, kLease.name); }
  std::string holder() { return std::string(model::text_at(lease(), {"spec", "holderIdentity"})); }
  void write_holder(const std::string& name) {
    server_.client().patch(client::kLeases, kLease.ns, kLease.name, client::PatchKind::merge,
                           Json{{"spec", {{"holderIdentity", name}}}});
  }

  TestServer server_;
};

TEST_F(LeaderElectionTest, OneLeadsAndTheOtherTakesOverWhenItGoes) {
  Candidate one(server_.client(), "one");
  EXPECT_TRUE(one.leads());
  EXPECT_TRUE(one.is_leader());
  Candidate two(server_.client(), "two");
  EXPECT_FALSE(two.leads(50ms));
  EXPECT_EQ(holder(), "one");
  EXPECT_EQ(model::number_at(lease(), {"spec", "leaseTransitions"}), 0);

  const auto released = std::chrono::steady_clock::now();
  EXPECT_TRUE(one.stop()) << "stopped, not lost";
  EXPECT_FALSE(one.is_leader());
  EXPECT_TRUE(two.leads());
  // Far less than the lease would have lasted.
  EXPECT_LT(std::chrono::steady_clock::now() - released, 30s);
  EXPECT_EQ(holder(), "two");
  EXPECT_EQ(model::number_at(lease(), {"spec", "leaseTransitions"}), 1);
  EXPECT_TRUE(two.stop());
  EXPECT_EQ(holder(), "");
}

TEST_F(LeaderElectionTest, ALeaseThatNobodyRenewsIsTakenWhenItIsOver) {
  server_.client().create(client::kLeases,
                          apiserver::json(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease",
          "metadata":{"namespace":"default","name":"the-lease"},
          "spec":{"holderIdentity":"dead","leaseDurationSeconds":1,"leaseTransitions":4}})"));
  const auto began = std::chrono::steady_clock::now();
  Candidate one(server_.client(), "one");
  EXPECT_TRUE(one.leads());
  EXPECT_GE(std::chrono::steady_clock::now() - began, 1s);
  EXPECT_EQ(model::number_at(lease(), {"spec", "leaseTransitions"}), 5);
  EXPECT_EQ(model::number_at(lease(), {"spec", "leaseDurationSeconds"}), 60);
  EXPECT_FALSE(model::text_at(lease(), {"spec", "acquireTime"}).empty());
}

TEST_F(LeaderElectionTest, WhoFindsAnotherOnItsLeaseStops) {
  Candidate one(server_.client(), "one");
  EXPECT_TRUE(one.leads());
  write_holder("usurper");
  EXPECT_TRUE(one.is_told_to_end());
  EXPECT_FALSE(one.join());
  EXPECT_EQ(one.why_lost(), "another process holds it now");
  EXPECT_EQ(holder(), "usurper") << "what is not ours is not given up";
}

// All calls of this client fail, once told so.
class Gate final : public client::PassingClient {
 public:
  using PassingClient::PassingClient;
  void shut() { is_shut_ = true; }

 private:
  client::Client& turn() override {
    if (is_shut_) fail(Code::unavailable, "the server is away");
    return PassingClient::turn();
  }

  std::atomic<bool> is_shut_ = false;
};

TEST_F(LeaderElectionTest, WhoCannotRenewStopsBeforeOthersMayLead) {
  Gate gate(server_.client());
  LeaderElectionOptions brief = eager("one");
  brief.lease_duration = 8s;
  brief.renew_deadline = 4s;
  Candidate one(gate, brief);
  EXPECT_TRUE(one.leads());
  gate.shut();
  const auto shut = std::chrono::steady_clock::now();
  Candidate two(server_.client(), "two");
  EXPECT_TRUE(one.is_told_to_end());
  const auto told = std::chrono::steady_clock::now();
  EXPECT_GE(told - shut, 500ms);
  EXPECT_FALSE(one.join());
  EXPECT_EQ(one.why_lost(), "it was not renewed in time");
  EXPECT_FALSE(one.is_leader());
  EXPECT_TRUE(two.leads());
}

TEST_F(LeaderElectionTest, AWriteByOthersIsNoLoss) {
  Candidate one(server_.client(), "one");
  EXPECT_TRUE(one.leads());
  for (int i = 0; i < 50; ++i) {
    server_.client().patch(client::kLeases, kLease.ns, kLease.name, client::PatchKind::merge,
                           Json{{"metadata", {{"labels", {{"n", std::to_string(i)}}}}}});
  }
  EXPECT_TRUE(one.is_leader());
  EXPECT_TRUE(one.stop());
}

TEST_F(LeaderElectionTest, WhatTheLeaderThrowsComesOutAndTheLeaseIsFree) {
  LeaderElection election(server_.client(), eager("one"));
  EXPECT_THROW(election.run([](const std::stop_token&) { fail(Code::timeout, "no caches"); }, {}),
               Error);
  EXPECT_EQ(holder(), "");
}

TEST_F(LeaderElectionTest, StoppedBeforeItLedItNeverLeads) {
  std::stop_source stop;
  stop.request_stop();
  LeaderElection election(server_.client(), eager("one"));
  EXPECT_TRUE(election.run([](const std::stop_token&) { ADD_FAILURE(); }, stop.get_token()));
}

TEST_F(LeaderElectionTest, IdentitiesAreMadeUpAndDiffer) {
  const LeaderElection one(server_.client(), {.lease = kLease});
  const LeaderElection two(server_.client(), {.lease = kLease});
  EXPECT_FALSE(one.identity().empty());
  EXPECT_NE(one.identity(), two.identity());
}

TEST_F(LeaderElectionTest, WhoDoesNotStopInTimeIsEnded) {
  LeaderElectionOptions brief = eager("one");
  brief.lease_duration = 1s;
  brief.renew_deadline = 500ms;
  std::promise<void> ended;
  brief.on_overrun = [&] { ended.set_value(); };
  LeaderElection election(server_.client(), brief);

  // As one that waits for an answer: it does not hear that the lease was lost.
  const bool has_kept = election.run(
      [&](const std::stop_token&) {
        write_holder("usurper");
        EXPECT_EQ(ended.get_future().wait_for(30s), std::future_status::ready);
      },
      {});

  EXPECT_FALSE(has_kept);
}

}  // namespace
}  // namespace hearth::reconcile
