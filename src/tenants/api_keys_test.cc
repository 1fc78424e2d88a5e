#include "tenants/api_keys.h"

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "base/base64.h"
#include "client/kinds.h"
#include "tenants/digest_internal.h"

namespace hearth::tenants {
namespace {

using apiserver::eventually;
using apiserver::json;

constexpr Duration kPatience = std::chrono::seconds(10);

class ApiKeysTest : public testing::Test {
 protected:
  void SetUp() override {
    create_team(client_, "red", {.sandboxes = 7});
    keys_.start();
    ASSERT_TRUE(keys_.wait_synced(kPatience));
  }

  IssuedKey issue(const std::string& team, LimitChanges limits = {},
                  std::optional<Time> expires = {}) {
    return keys_.issue({.team = team, .name = "a key", .limits = limits, .expires = expires});
  }

  apiserver::TestServer server_;
  client::Client& client_ = server_.client();
  ManualClock clock_;
  ApiKeys keys_{client_, clock_};
};

TEST_F(ApiKeysTest, OpenTheirTeamsDoor) {
  const IssuedKey issued = issue("red", {.sandboxes = 2});
  EXPECT_EQ(issued.key.size(), 44U);
  EXPECT_TRUE(issued.key.starts_with("e2b_"));
  const auto holder = keys_.find(issued.key);
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->team, "red");
  EXPECT_EQ(holder->ns, "red");
  EXPECT_EQ(holder->name, "a key");
  EXPECT_EQ(holder->id, issued.info.id);
  EXPECT_EQ(holder->limits.sandboxes, 2);
  EXPECT_EQ(keys_.find(issue("red").key)->limits.sandboxes, 7);
  EXPECT_EQ(keys_.find(issue("default").key)->ns, "default");
}

TEST_F(ApiKeysTest, AreNotWithoutEnd) {
  const IssuedKey issued = issue("red");
  const model::Json first =
      client_.get(client::kSecrets, "hearth-system", "api-key-" + issued.info.id);
  for (std::size_t i = 1; i < kMostKeys; ++i) {
    const std::string hash = sha256_hex(std::to_string(i));
    std::string text = model::to_text(first);
    const auto put = [&](std::string_view old, std::string_view now) {
      for (auto at = text.find(old); at != std::string::npos; at = text.find(old, at + now.size()))
        text.replace(at, old.size(), now);
    };
    put(base64_encode(sha256_hex(issued.key)), base64_encode(hash));
    put("api-key-" + issued.info.id, "api-key-" + hash.substr(0, 16));
    model::Json secret = json(text);
    for (const char* of_the_first : {"uid", "resourceVersion", "creationTimestamp"})
      model::make_object_at(secret, {"metadata"}).erase(of_the_first);
    client_.create(client::kSecrets, secret);
  }
  EXPECT_THROW(issue("red"), Error);
  EXPECT_TRUE(keys_.find(issue("default").key)) << "another team's are its own";
  EXPECT_TRUE(keys_.revoke(issued.info.id));
  EXPECT_TRUE(keys_.find(issue("red").key));
}

TEST_F(ApiKeysTest, AreNotStored) {
  const IssuedKey issued = issue("red");
  const auto secrets = client_.list(client::kSecrets, {.ns = "hearth-system"});
  ASSERT_EQ(secrets.items.size(), 1U);
  const std::string text = model::to_text(secrets.items[0]);
  EXPECT_EQ(text.find(issued.key.substr(4)), std::string::npos);
  EXPECT_EQ(model::text_at(secrets.items[0], {"metadata", "name"}),
            "api-key-" + sha256_hex(issued.key).substr(0, 16));
  EXPECT_EQ(model::text_at(secrets.items[0], {"type"}), "hearth.dev/api-key");
  EXPECT_EQ(issued.info.first, issued.key.substr(4, 2));
  EXPECT_EQ(issued.info.last, issued.key.substr(40));
}

TEST_F(ApiKeysTest, WhatIsNoKeyIsNobody) {
  const std::string key = issue("red").key;
  std::string other = key;
  other.back() = other.back() == '0' ? '1' : '0';
  std::string upper = "E2B_" + key.substr(4);
  for (const std::string& text :
       {std::string(), std::string("e2b_"), other, upper, key + "0", key.substr(0, 43), " " + key,
        "sk_" + key, sha256_hex(key), std::string(1 << 20, 'e')})
    EXPECT_FALSE(keys_.find(text)) << text.substr(0, 64);
}

TEST_F(ApiKeysTest, StopWorkingWhenRevoked) {
  const IssuedKey issued = issue("red");
  const IssuedKey other = issue("red");
  EXPECT_TRUE(keys_.revoke(issued.info.id));
  EXPECT_FALSE(keys_.find(issued.key));
  EXPECT_FALSE(keys_.revoke(issued.info.id));
  EXPECT_TRUE(keys_.find(other.key));
  // By somebody else, with kubectl.
  client_.remove(client::kSecrets, "hearth-system", "api-key-" + other.info.id);
  EXPECT_TRUE(eventually([&] { return !keys_.find(other.key); }));
}

TEST_F(ApiKeysTest, OnlyKeysAreRevoked) {
  issue("red");
  client_.create(client::kSecrets, json(R"({"apiVersion":"v1","kind":"Secret",
      "metadata":{"name":"api-key-other","namespace":"hearth-system"}})"));
  EXPECT_FALSE(keys_.revoke("other"));
  EXPECT_TRUE(client_.find(client::kSecrets, "hearth-system", "api-key-other"));
  EXPECT_THROW(keys_.revoke("../../x"), Error);
}

TEST_F(ApiKeysTest, Expire) {
  const IssuedKey issued = issue("red", {}, clock_.now() + std::chrono::hours(1));
  EXPECT_TRUE(keys_.find(issued.key));
  clock_.advance(std::chrono::hours(1));
  EXPECT_FALSE(keys_.find(issued.key));
}

TEST_F(ApiKeysTest, AnExpiryThatNobodyCanReadHasPassed) {
  const IssuedKey issued = issue("red");
  client_.patch(client::kSecrets, "hearth-system", "api-key-" + issued.info.id,
                client::PatchKind::merge,
                json(R"({"metadata":{"annotations":{"hearth.dev/expires-at":"soon"}}})"));
  EXPECT_TRUE(eventually([&] { return !keys_.find(issued.key); }));
}

TEST_F(ApiKeysTest, GoWithTheirTeam) {
  const IssuedKey issued = issue("red");
  // The namespace alone, as kubectl would.
  client_.remove(client::kNamespaces, "", "red");
  EXPECT_TRUE(eventually([&] { return !keys_.find(issued.key); }));
  EXPECT_THROW(issue("red"), Error);
}

TEST_F(ApiKeysTest, FollowTheirTeamsLimits) {
  const IssuedKey issued = issue("red", {.memory_mib = 512});
  change_limits(client_, "red", {.sandboxes = 1, .memory_mib = 1024});
  EXPECT_TRUE(eventually([&] { return keys_.find(issued.key)->limits.sandboxes == 1; }));
  EXPECT_EQ(keys_.find(issued.key)->limits.memory_mib, 512);
  EXPECT_EQ(keys_.find_team("red")->limits.memory_mib, 1024);
  EXPECT_EQ(keys_.teams().size(), 2U);
}

TEST_F(ApiKeysTest, ASecretWithAnotherHashIsNone) {
  const std::string key = "e2b_" + std::string(40, '0');
  const std::string hash = sha256_hex(key);
  const auto forged = [&](const std::string& name, const std::string& type) {
    return json(R"({"apiVersion":"v1","kind":"Secret","type":")" + type +
                R"(","stringData":{"sha256":")" + hash + R"("},"metadata":{"name":")" + name +
                R"(","namespace":"hearth-system","labels":{"hearth.dev/team":"red"}}})");
  };
  issue("red");
  client_.create(client::kSecrets, forged("api-key-0000000000000000", "hearth.dev/api-key"));
  client_.create(client::kSecrets, forged("api-key-" + hash.substr(0, 16), "Opaque"));
  const IssuedKey last = issue("red");  // when this is known, so are those before
  EXPECT_TRUE(keys_.find(last.key));
  EXPECT_FALSE(keys_.find(key));
  EXPECT_EQ(list_keys(client_, "red").size(), 2U);
}

TEST_F(ApiKeysTest, AreListedAndRenamed) {
  const IssuedKey first = issue("red");
  issue("default");
  ASSERT_EQ(list_keys(client_, "red").size(), 1U);
  EXPECT_EQ(list_keys(client_, "").size(), 2U);
  EXPECT_EQ(rename_key(client_, first.info.id, "laptop").name, "laptop");
  EXPECT_EQ(list_keys(client_, "red")[0].name, "laptop");
  EXPECT_EQ(find_key(client_, first.info.id)->team, "red");
  EXPECT_FALSE(find_key(client_, "0123456789abcdef"));
  EXPECT_THROW(rename_key(client_, first.info.id, ""), Error);
  EXPECT_THROW(rename_key(client_, "0123456789abcdef", "x"), Error);
  EXPECT_THROW(issue_key(client_, {.team = "red", .name = "a\nb", .limits = {}, .expires = {}}),
               Error);
  EXPECT_THROW(issue_key(client_, {.team = "no", .name = "a", .limits = {}, .expires = {}}), Error);
}

TEST_F(ApiKeysTest, AreKnownAgainAfterARestart) {
  const IssuedKey issued = issue("red");
  ApiKeys again(client_, clock_);
  EXPECT_FALSE(again.find(issued.key));
  again.start();
  ASSERT_TRUE(again.wait_synced(kPatience));
  EXPECT_TRUE(again.find(issued.key));
}

}  // namespace
}  // namespace hearth::tenants
