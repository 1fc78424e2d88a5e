#include "cli/engine_user.h"

#include <map>

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::cli {
namespace {

class EngineUserTest : public testing::Test {
 protected:
  EngineUser choose(const std::string& flag, const std::string& sudo_uid = "",
                    const std::string& sudo_gid = "") {
    return choose_engine_user(
        {.flag = flag,
         .sudo_uid = sudo_uid,
         .sudo_gid = sudo_gid,
         .find_account = [this](const std::string& name) { return find(name); },
         .find_account_of_uid = [this](uid_t uid) { return find(uid); }});
  }

  std::map<std::string, EngineUser> accounts_ = {{"root", {.uid = 0, .gid = 0}},
                                                 {"operator", {.uid = 11, .gid = 0}},
                                                 {"ann", {.uid = 1000, .gid = 1001}}};

 private:
  std::optional<EngineUser> find(const std::string& name) const {
    const auto found = accounts_.find(name);
    return found == accounts_.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<EngineUser> find(uid_t uid) const {
    for (const auto& [name, user] : accounts_) {
      if (user.uid == uid) return user;
    }
    return std::nullopt;
  }
};

TEST_F(EngineUserTest, TheFlagTakesNamesAndUids) {
  EXPECT_EQ(choose("ann"), (EngineUser{.uid = 1000, .gid = 1001}));
  EXPECT_EQ(choose("1000"), (EngineUser{.uid = 1000, .gid = 1001}));
  EXPECT_EQ(choose("4711"), (EngineUser{.uid = 4711, .gid = 4711}));
}

TEST_F(EngineUserTest, RootAndItsGroupAndNobodyKnownAreRefused) {
  for (const char* flag : {"root", "0", "operator", "nosuch", "-1", "4294967295"}) {
    EXPECT_THROW(choose(flag), Error) << flag;
  }
}

TEST_F(EngineUserTest, WhoCalledSudoComesBeforeTheAccountOfTheEngine) {
  accounts_[kEngineAccount] = {.uid = 990, .gid = 991};

  EXPECT_EQ(choose("", "1000", "1001"), (EngineUser{.uid = 1000, .gid = 1001}));
  EXPECT_EQ(choose(""), (EngineUser{.uid = 990, .gid = 991}));
  EXPECT_EQ(choose("", "0", "0"), (EngineUser{.uid = 990, .gid = 991}));
  EXPECT_EQ(choose("", "x", "1"), (EngineUser{.uid = 990, .gid = 991}));
}

TEST_F(EngineUserTest, WithoutAnybodyItIsAUidThatNoAccountHas) {
  EXPECT_EQ(choose(""), (EngineUser{.uid = kBareUid, .gid = kBareUid}));
}

}  // namespace
}  // namespace hearth::cli
